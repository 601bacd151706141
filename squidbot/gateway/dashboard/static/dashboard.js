// What a page does by itself: live updates, times in the reader's zone, the dialog of the grid. Everything else works without it.
"use strict";
(() => {
  const $ = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));

  // Times in the reader's zone; the exact one in UTC stays in the title.
  const forms = {
    full: { dateStyle: "medium", timeStyle: "medium" },
    short: { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
    day: { dateStyle: "medium" },
    date: { month: "short", day: "numeric" },
    time: { hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  };
  const isToday = (at) => at.toDateString() === new Date().toDateString();
  function localise(within) {
    for (const element of all("time[datetime]", within)) {
      const at = new Date(element.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      let form = { ...(forms[element.dataset.form] || forms.full) };
      if (element.dataset.form === "short" && isToday(at)) {
        delete form.month;
        delete form.day;
      }
      element.textContent = new Intl.DateTimeFormat(undefined, form).format(at);
    }
    for (const title of all("title[data-at]", within)) {
      const at = new Intl.DateTimeFormat(undefined, { ...forms.date, ...forms.time }).format(new Date(title.dataset.at));
      title.textContent = `${at}: ${title.textContent.split(": ").slice(1).join(": ")}`;
    }
  }

  async function fetchPage(address, options) {
    const answer = await fetch(address, { credentials: "same-origin", ...options });
    if (answer.redirected && new URL(answer.url).pathname.endsWith("/sign-in")) location.assign(answer.url);
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  }

  // A parsed page runs no script; its parts are taken over as they are.
  function takeOver(page, selector) {
    for (const old of all(selector)) {
      const fresh = old.id && page.getElementById(old.id);
      if (!fresh) continue;
      const open = all("details", old).map((element) => element.open);
      const scrolled = all(".scroll, .grid-box, pre", old).map((element) => [element.scrollLeft, element.scrollTop]);
      const node = document.importNode(fresh, true);
      localise(node);
      const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      old.replaceWith(node);
      all("details", node).forEach((element, place) => { if (open[place]) element.open = true; });
      all(".scroll, .grid-box, pre", node).forEach((element, place) => {
        if (scrolled[place]) [element.scrollLeft, element.scrollTop] = scrolled[place];
      });
      if (focused) all("a[href]", node).find((link) => link.getAttribute("href") === focused)?.focus({ preventScroll: true });
    }
  }

  function showMessages(page) {
    for (const old of all("main > .message")) old.remove();
    const main = $("main");
    for (const message of all("main > .message", page).reverse()) main.prepend(document.importNode(message, true));
  }

  // Live: parts of a page that name a topic are fetched anew when something of it happens, at most every two seconds.
  const state = $("[data-live-state]");
  const say = (name, words) => { if (state) { state.dataset.state = name; state.textContent = words; } };
  let due = null;
  let last = 0;
  function refreshSoon() {
    if (due !== null) return;
    due = setTimeout(async () => {
      last = Date.now();
      try {
        const page = await fetchPage(location.href);
        takeOver(page, "[data-refresh]");
      } catch { /* the stream says that it is off */ }
      due = null;
    }, Math.max(150, 2000 - (Date.now() - last)));
  }
  const wants = (topic) => all("[data-refresh]").some((part) => part.dataset.refresh.split(" ").includes(topic));

  // The list of calls: rows are made from a template, their words set as text.
  const rows = $("[data-calls] [data-call-rows]");
  const most = 200;
  let paused = false;
  let waiting = [];
  const tones = {
    ok: "ok", refused: "warn", limited: "warn", timeout: "warn", tool_error: "bad", server_error: "bad",
    unknown: "note", cancelled: "note",
  };
  const base = new URL(document.body.dataset.events || "/events", location.href).pathname.replace(/events$/, "");
  const address = (path, query) => `${base}${path}?${new URLSearchParams(query)}`;

  function fill(row, call, underWay) {
    const slot = (name) => $(`[data-slot="${name}"]`, row);
    row.dataset.record = call.id;
    slot("link").href = address("call", { id: call.id });
    if (underWay) slot("link").removeAttribute("href");
    const time = slot("when");
    if (call.timestamp) {
      time.dateTime = call.timestamp;
      time.title = call.timestamp.replace("T", " ").replace("Z", " UTC");
    } else {
      time.textContent = "now";
    }
    const outcome = slot("outcome");
    outcome.textContent = underWay ? "under way" : String(call.outcome).replaceAll("_", " ");
    outcome.className = `badge ${underWay ? "" : tones[call.outcome] || ""}`;
    const tool = slot("tool");
    tool.textContent = call.label || `${call.server}/${call.tool}`;
    const isCall = (call.kind || "call") === "call";
    const kind = slot("kind");
    kind.hidden = isCall;
    kind.textContent = isCall ? "" : call.kind.replaceAll("_", " ");
    tool.hidden = !isCall && call.label === call.kind;
    if (call.server && isCall) tool.href = address("tool", { server: call.server, tool: call.tool });
    slot("role").textContent = call.role;
    slot("by").textContent = call.by || "";
    slot("took").textContent = call.took || "";
    const words = slot("words");
    words.textContent = call.words;
    words.classList.toggle("soft", !call.failed);
    if (underWay && typeof call.progress === "number") {
      const bar = document.createElement("progress");
      if (typeof call.total === "number" && call.total > 0) {
        bar.max = call.total;
        bar.value = Math.min(call.progress, call.total);
      }
      words.prepend(bar, " ");
    }
  }

  function put(call, underWay) {
    const old = Array.from(rows.children).find((row) => row.dataset.record === call.id);
    const row = $("#call-row").content.firstElementChild.cloneNode(true);
    fill(row, call, underWay);
    localise(row);
    if (!underWay) row.classList.add("fresh");
    if (old) old.replaceWith(row);
    else rows.prepend(row);
    while (rows.children.length > most) rows.lastElementChild.remove();
    const box = $("[data-calls-box]");
    if (box) box.hidden = false;
    $("[data-no-calls]")?.remove();
  }

  const pause = $("[data-pause]");
  function sayPaused() {
    $("[data-pause-words]").textContent = paused ? `Go on${waiting.length ? ` (${waiting.length} new)` : ""}` : "Pause";
  }
  if (pause && rows) {
    pause.hidden = false;
    pause.addEventListener("click", () => {
      paused = !paused;
      pause.setAttribute("aria-pressed", String(paused));
      if (!paused) {
        for (const call of waiting) put(call, false);
        waiting = [];
      }
      say(paused ? "paused" : "on", paused ? "paused" : "live");
      sayPaused();
    });
  }

  function listen() {
    const topics = (document.body.dataset.topics || "").split(" ").filter(Boolean);
    if (!topics.length || !window.EventSource) return;
    const source = new EventSource(document.body.dataset.events);
    let wasOff = false;
    source.addEventListener("open", () => {
      say(paused ? "paused" : "on", paused ? "paused" : "live");
      if (wasOff) refreshSoon();
      wasOff = false;
    });
    source.addEventListener("error", () => {
      wasOff = true;
      say("off", "connection lost, trying again");
      // A stream that was refused is not tried again by the browser itself.
      if (source.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
    });
    source.addEventListener("signed-out", () => { source.close(); location.reload(); });
    for (const topic of topics) {
      source.addEventListener(topic, (event) => {
        const data = JSON.parse(event.data);
        if (topic === "call" && rows) {
          if (paused) {
            waiting = [...waiting, data].slice(-most);
            sayPaused();
          } else {
            put(data, false);
          }
        } else if (topic === "progress" && rows && !paused) {
          put(data, true);
        }
        if (wants(topic)) refreshSoon();
      });
    }
    addEventListener("pagehide", () => source.close(), { once: true });
  }

  // The grid: a cell's rule opens above the page, and a change is made without leaving it.
  const dialog = $("#explain-dialog");
  if (dialog && dialog.showModal) {
    const content = $("[data-dialog-content]", dialog);
    document.addEventListener("click", async (event) => {
      const cell = event.target.closest?.("a[data-explain]");
      if (!cell || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      const page = await fetchPage(cell.href).catch(() => null);
      const found = page && $("[data-explanation]", page);
      if (!found) return void location.assign(cell.href);
      content.replaceChildren(document.importNode(found, true));
      dialog.showModal();
    });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    content.addEventListener("submit", async (event) => {
      event.preventDefault();
      const form = event.target;
      const body = new URLSearchParams(new FormData(form, event.submitter));
      const page = await fetchPage(form.action, { method: "POST", body }).catch(() => null);
      dialog.close();
      if (!page || !$("#grid", page)) return void location.reload();
      showMessages(page);
      takeOver(await fetchPage(location.href), "#grid");
    });
  }

  // Small comforts.
  for (const form of all("[data-theme-choice]")) {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const theme = event.submitter.value;
      const body = new URLSearchParams(new FormData(form, event.submitter));
      if (theme) document.documentElement.dataset.theme = theme;
      else delete document.documentElement.dataset.theme;
      for (const button of all("button", form)) button.setAttribute("aria-pressed", String(button === event.submitter));
      await fetch(form.action, { method: "POST", body, redirect: "manual", credentials: "same-origin" }).catch(() => null);
    });
  }
  for (const form of all("[data-ask]")) {
    form.addEventListener("submit", (event) => { if (!confirm(form.dataset.ask)) event.preventDefault(); });
  }
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented || event.target.method !== "post") return;
    const button = event.submitter;
    if (button) setTimeout(() => { button.disabled = true; }, 0);
  });
  addEventListener("pageshow", () => { for (const button of all("button:disabled")) button.disabled = false; });
  for (const button of all("[data-copy]")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText($(button.dataset.copy).textContent);
      button.lastChild.textContent = "Copied";
    });
  }
  for (const form of all("[data-submit-at-once]")) form.requestSubmit();
  for (const select of all("form.filters select")) select.addEventListener("change", () => select.form.requestSubmit());

  $(".ways [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  localise(document);
  listen();
})();
