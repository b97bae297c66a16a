// Light or dark: as the system says, until somebody says otherwise.

export type Theme = "light" | "dark";

const KEY = "sluice.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

function chosen(): Theme | null {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : null;
}

/** What is shown now. */
export const theme = (): Theme => chosen() ?? (dark.matches ? "dark" : "light");

/** Shows the page in its theme, also when the system changes. */
export function applyTheme(): void {
  document.documentElement.dataset.theme = theme();
  dark.onchange = () => {
    document.documentElement.dataset.theme = theme();
  };
}

/** The other one, from now on. */
export function switchTheme(): Theme {
  const next: Theme = theme() === "dark" ? "light" : "dark";
  localStorage.setItem(KEY, next);
  document.documentElement.dataset.theme = next;
  return next;
}
