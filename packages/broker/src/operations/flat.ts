/**
 * The same text in one piece. V8 keeps a text that was put together as a tree of its parts and walks it whenever it is copied: one
 * that goes into many others is put together first, which reading any of its characters does.
 */
export function flat(text: string): string {
  text.charCodeAt(0);
  return text;
}
