// The page is complete without this. With it, it refreshes in place every two seconds,
// keeps the reader's scroll position, and says when the agent does not answer.
(function () {
  "use strict";
  var main = document.getElementById("main");
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
        main.replaceWith(fresh);
        main = fresh;
      })
      .catch(lost);
  }
  setInterval(refresh, 2000);
  document.addEventListener("visibilitychange", refresh);
})();
