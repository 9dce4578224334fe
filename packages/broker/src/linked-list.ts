/**
 * A linked list: first in, first out, and whatever stands in it can leave or go to the end. Each step costs the same however
 * many there are. (A Map or Set keeps an order as well, but to find its first entry it walks over the places of all that
 * were deleted before it.)
 */
export class Link<T> {
  readonly item: T;
  /** Its neighbours; undefined at the ends, and once it has left. */
  before: Link<T> | undefined = undefined;
  after: Link<T> | undefined = undefined;

  constructor(item: T) {
    this.item = item;
  }
}

export class LinkedList<T> {
  #first: Link<T> | undefined;
  #last: Link<T> | undefined;

  get first(): T | undefined {
    return this.#first?.item;
  }

  push(item: T): Link<T> {
    const link = new Link(item);
    this.#append(link);
    return link;
  }

  moveToEnd(link: Link<T>): void {
    if (link === this.#last) return;
    this.remove(link);
    this.#append(link);
  }

  /** The link must stand in this list. */
  remove(link: Link<T>): void {
    const { before, after } = link;
    if (before) before.after = after;
    else this.#first = after;
    if (after) after.before = before;
    else this.#last = before;
    link.before = undefined;
    link.after = undefined;
  }

  #append(link: Link<T>): void {
    link.before = this.#last;
    if (this.#last) this.#last.after = link;
    else this.#first = link;
    this.#last = link;
  }
}
