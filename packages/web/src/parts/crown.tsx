/** The sign of the page. */
export function Crown() {
  return (
    <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true" focusable="false">
      <path d="M5 22 4 9l7 5.5L16 6l5 8.5L28 9l-1 13z" fill="currentColor" />
      <rect x="5" y="24" width="22" height="3" rx="1.5" fill="currentColor" opacity=".6" />
    </svg>
  );
}
