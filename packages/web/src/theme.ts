/** Light, dark, or as the system says. */
import { computed, signal } from "@preact/signals";

export type ThemeChoice = "system" | "light" | "dark";
export const THEME_CHOICES: readonly ThemeChoice[] = ["system", "light", "dark"];

const KEY = "queen-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(dark.matches);
dark.addEventListener("change", () => {
  systemIsDark.value = dark.matches;
});

const read = (): ThemeChoice => {
  const stored = localStorage.getItem(KEY);
  return THEME_CHOICES.find((choice) => choice === stored) ?? "system";
};

export const themeChoice = signal<ThemeChoice>(read());
export const theme = computed<"light" | "dark">(() =>
  themeChoice.value === "system" ? (systemIsDark.value ? "dark" : "light") : themeChoice.value,
);

export function chooseTheme(choice: ThemeChoice): void {
  themeChoice.value = choice;
  localStorage.setItem(KEY, choice);
  show();
}

function show(): void {
  document.documentElement.dataset.theme = themeChoice.value;
}
show();
