// Shared by all pages: elements by name, numbers as text, the theme. Names are set as text only.
"use strict";
const $ = (id) => document.getElementById(id);
const all = (what, where = document) => [...where.querySelectorAll(what)];
const root = document.documentElement;
const grouped = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, "\u2009");

// Light or dark: as in the system's settings, unless the button or the address of the page sets it.
const theme = (() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  let changed = () => {};
  function set(name) {
    if (name) root.dataset.theme = name;
    $("theme").textContent = isDark() ? "Light" : "Dark";
    $("theme").setAttribute("aria-pressed", String(isDark()));
    changed();
  }
  const flip = () => set(isDark() ? "light" : "dark");
  return {
    set, flip,
    begin(then) {
      set();
      changed = then;
      $("theme").hidden = false;
      $("theme").addEventListener("click", flip);
      system.addEventListener("change", () => set());
    },
  };
})();
