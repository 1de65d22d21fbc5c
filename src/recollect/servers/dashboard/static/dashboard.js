// What scripts add to pages that work without them: a sign that something is under way, a page that keeps itself
// fresh while it is looked at, and a button that copies.
"use strict";

function showWork(form) {
  const button = form.querySelector("button.primary");
  form.addEventListener("submit", () => {
    document.documentElement.setAttribute("aria-busy", "true");
    button.dataset.label = button.textContent;
    button.textContent = form.dataset.busy;
  });
  addEventListener("pageshow", () => { // back from the next page, as it was left
    document.documentElement.removeAttribute("aria-busy");
    button.textContent = button.dataset.label || button.textContent;
  });
}

function keepFresh(live) {
  const offline = document.getElementById("offline");
  const reason = offline.querySelector("p");

  async function look() {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.redirected) return location.reload(); // to sign in
      const text = await answer.text();
      const page = new DOMParser().parseFromString(text, "text/html");
      const fresh = page.getElementById(live.id);
      if (!fresh) throw Error(page.querySelector("[role=alert]").textContent.trim());
      exchange(live, fresh);
      offline.hidden = true;
    } catch (error) {
      reason.textContent = error instanceof TypeError ? "It cannot be reached." : `It says: ${error.message.replace(/\.$/, "")}.`;
      offline.hidden = false;
    }
  }

  async function forever() {
    await look();
    setTimeout(forever, live.dataset.every * 1000);
  }

  setTimeout(forever, live.dataset.every * 1000);
  document.addEventListener("visibilitychange", look);
}

// What is open stays open, and the focus stays where it is.
function exchange(live, fresh) {
  for (const open of live.querySelectorAll("details[open][id]")) {
    const same = fresh.querySelector(`#${open.id}`);
    if (same) same.open = true;
  }
  const links = [...live.querySelectorAll("a, summary, [tabindex]")];
  const focused = links.indexOf(document.activeElement);
  live.replaceChildren(...fresh.childNodes);
  if (focused >= 0) live.querySelectorAll("a, summary, [tabindex]")[focused]?.focus({ preventScroll: true });
}

function copyOnClick(button) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const field = document.getElementById(button.dataset.copies);
    field.select();
    if (!navigator.clipboard) return; // on a plain connection: it is selected, and a key copies it
    await navigator.clipboard.writeText(field.value);
    button.textContent = "Copied";
  });
}

document.querySelectorAll("form[data-busy]").forEach(showWork);
document.querySelectorAll("[data-every]").forEach(keepFresh);
document.querySelectorAll("[data-copies]").forEach(copyOnClick);
