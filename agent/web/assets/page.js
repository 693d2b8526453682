// The page is complete without this. With it, it changes in place as the agent sends what is new,
// keeps the reader's scroll position, the rows that were opened or closed, and the focus, and says when the agent does not answer.
(function () {
  "use strict";
  var main = document.getElementById("main");
  var chosen = {}; // by the id of what a row opens to: whether the reader wants it open
  function rows(root, each) {
    root.querySelectorAll("details > [id]").forEach(function (body) { each(body.parentNode, body.id); });
  }
  document.addEventListener("toggle", function (e) { // also by the keyboard, and by a search in the browser
    var body = e.target.querySelector(":scope > [id]");
    if (body) { chosen[body.id] = e.target.open; }
  }, true);
  function keep(old, fresh) {
    rows(fresh, function (row, id) { if (id in chosen) { row.open = chosen[id]; } });
    var focused = document.activeElement;
    return focused && focused.matches("summary") && old.contains(focused) ? focused.nextElementSibling.id : "";
  }
  // Selected text stays, and the page says that it is not refreshed.
  function selecting() {
    var s = window.getSelection();
    var some = s && !s.isCollapsed;
    main.classList.toggle("waits", Boolean(some));
    return some;
  }
  var icon = document.getElementById("icon");
  function showIcon(level) {
    var address = icon.dataset[level] || icon.dataset.error;
    if (icon.getAttribute("href") !== address) { icon.href = address; }
  }
  // The agent writes times in its host's zone, as in its log and commands. For a reader in another zone the times change, and each has the
  // host's as its title.
  function here() {
    var t = main.querySelector(".who time");
    var zone = t && /(Z|([+-])(\d\d):(\d\d))$/.exec(t.dateTime);
    if (!zone) { return; }
    var there = zone[2] ? Number(zone[2] + "1") * (60 * Number(zone[3]) + Number(zone[4])) : 0;
    var now = new Date(t.dateTime);
    if (-now.getTimezoneOffset() === there) { return; }
    var host = t.textContent.split(" ").pop(); // the name of the host's zone
    main.querySelectorAll("time[datetime]").forEach(function (one) {
      var form = { hourCycle: "h23", hour: "2-digit", minute: "2-digit" };
      if (/:\d\d:/.test(one.textContent)) { form.second = "2-digit"; } else { form.month = "short"; form.day = "numeric"; }
      if (/ \d{4} /.test(one.textContent)) { form.year = "numeric"; }
      if (one === t) { form.year = form.month = form.day = "numeric"; form.timeZoneName = "short"; }
      one.title = one.textContent + (one === t ? "" : " " + host);
      one.textContent = new Date(one.dateTime).toLocaleString([], form);
    });
    t.after(", your time");
  }
  function lost() {
    main.classList.add("stale");
    showIcon("error");
    document.title = "✗ hwsagent: no answer";
    var h = main.querySelector("h1");
    var mark = main.querySelector(".mark");
    main.querySelector(".verdict").className = "verdict error";
    if (mark) mark.textContent = "✗";
    if (h) h.textContent = "The agent does not answer; what is below is old";
  }
  function show(html) {
    if (selecting()) { return; }
    var fresh = new DOMParser().parseFromString(html, "text/html").getElementById("main");
    if (!fresh) { throw new Error("no page"); }
    document.title = fresh.dataset.title;
    var focused = keep(main, fresh);
    main.replaceWith(fresh);
    main = fresh;
    showIcon(main.querySelector(".verdict").classList[1]);
    here();
    if (focused) { rows(main, function (row, id) { if (id === focused) { row.firstElementChild.focus({ preventScroll: true }); } }); }
  }
  // The agent sends what is in the page. Where it cannot, the page asks for itself.
  var source, silent, asking;
  function refresh() {
    if (document.hidden || selecting()) { return; }
    fetch(location.pathname + location.search, { cache: "no-store", signal: AbortSignal.timeout(5000) })
      .then(function (r) { if (!r.ok) { throw new Error(String(r.status)); } return r.text(); })
      .then(show).catch(lost);
  }
  function ask() { asking = asking || setInterval(refresh, 2000); }
  function waits() {
    clearTimeout(silent);
    silent = setTimeout(lost, 7000);
  }
  function close() {
    clearTimeout(silent);
    if (source) { source.close(); source = null; }
  }
  function listen() {
    close();
    if (main.hasAttribute("data-all")) { return; }
    if (document.hidden || asking) { refresh(); return; }
    if (!window.EventSource) { ask(); return; }
    source = new EventSource("/api/v1/stream?page=" + encodeURIComponent(location.pathname + location.search));
    source.addEventListener("main", function (e) { waits(); show(e.data); });
    source.onerror = function () {
      var over = source.readyState === EventSource.CLOSED;
      lost();
      if (over) { close(); ask(); }
    };
    waits();
  }
  here();
  document.addEventListener("visibilitychange", listen);
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", listen);
})();
