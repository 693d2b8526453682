// The page is complete without this. With it, it refreshes in place every two seconds,
// keeps the reader's scroll position, the rows that were opened or closed, and the focus, and says when the agent does not answer.
(function () {
  "use strict";
  var main = document.getElementById("main");
  var chosen = {}; // by the id of what a row opens to: whether the reader wants it open
  function rows(root, each) {
    root.querySelectorAll("details > [id]").forEach(function (body) { each(body.parentNode, body.id); });
  }
  document.addEventListener("click", function (e) {
    var s = e.target.closest && e.target.closest("summary");
    if (s) { chosen[s.nextElementSibling.id] = !s.parentNode.open; }
    var link = e.target.closest && e.target.closest("a[href^='#t-']");
    var body = link && document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (body) { chosen[body.id] = body.parentNode.open = true; }
  });
  function keep(old, fresh) {
    rows(fresh, function (row, id) { if (id in chosen) { row.open = chosen[id]; } });
    var focused = document.activeElement;
    return focused && focused.matches("summary") && old.contains(focused) ? focused.nextElementSibling.id : "";
  }
  function selecting() {
    var s = window.getSelection();
    return s && !s.isCollapsed;
  }
  function lost() {
    main.classList.add("stale");
    document.title = "✗ hwsagent: no answer";
    var h = main.querySelector("h1");
    var mark = main.querySelector(".mark");
    main.querySelector(".verdict").className = "verdict error";
    if (mark) mark.textContent = "✗";
    if (h) h.textContent = "The agent does not answer; what is below is old";
  }
  function refresh() {
    if (document.hidden || selecting()) { return; }
    fetch(location.pathname, { cache: "no-store", signal: AbortSignal.timeout(5000) })
      .then(function (r) { if (!r.ok) { throw new Error(String(r.status)); } return r.text(); })
      .then(function (html) {
        var next = new DOMParser().parseFromString(html, "text/html");
        var fresh = next.getElementById("main");
        if (!fresh) { throw new Error("no page"); }
        document.title = next.title;
        var focused = keep(main, fresh);
        main.replaceWith(fresh);
        main = fresh;
        if (focused) { rows(main, function (row, id) { if (id === focused) { row.firstElementChild.focus({ preventScroll: true }); } }); }
      })
      .catch(lost);
  }
  setInterval(refresh, 2000);
  document.addEventListener("visibilitychange", refresh);
})();
