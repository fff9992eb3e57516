import type { OpenItem } from './open-item.ts';
import type { Planned } from './plan.ts';
import { isSameEntry } from './upcoming-items.ts';

/** Opens an item. Parameters as in OpenItemOptions. */
type OpenPlanned = (planned: Planned, isFallback: boolean, isLoose: boolean, now: number) => OpenItem;

/** Items that are open ahead: the next one of the programs, and of the fallback program. */
export class ReadyItems {
  readonly #open: OpenPlanned;
  #main: OpenItem | undefined;
  #fallback: OpenItem | undefined;

  constructor(open: OpenPlanned) {
    this.#open = open;
  }

  /** Next item of the programs. */
  get main(): OpenItem | undefined {
    return this.#main;
  }

  /** Next item of the fallback program. */
  get fallback(): OpenItem | undefined {
    return this.#fallback;
  }

  /** Both, in order of precedence. */
  get both(): readonly (OpenItem | undefined)[] {
    return [this.#main, this.#fallback];
  }

  /** Opens the items that come next, and closes those that will not play. @param now monotonic milliseconds */
  prepare(main: Planned | undefined, fallback: Planned | undefined, now: number): void {
    if (!isOpen(this.#main, main)) {
      this.#main?.close();
      this.#main = main && this.#open(main, false, false, now);
    } else if (this.#main?.isStuck(now) === true) {
      this.#main.close();
      this.#main = main && this.#open(main, false, true, now);
    }
    if (!isOpen(this.#fallback, fallback)) {
      this.#fallback?.close();
      this.#fallback = fallback && this.#open(fallback, true, false, now);
    }
    // a changed schedule may have given them other ends and other items after them
    if (this.#main !== undefined && main !== undefined) this.#main.planned = main;
    if (this.#fallback !== undefined && fallback !== undefined) this.#fallback.planned = fallback;
  }

  /** Removes an item without closing it. */
  remove(item: OpenItem): void {
    if (item === this.#main) this.#main = undefined;
    if (item === this.#fallback) this.#fallback = undefined;
  }

  close(): void {
    for (const item of this.both) item?.close();
    this.#main = this.#fallback = undefined;
  }
}

function isOpen(item: OpenItem | undefined, planned: Planned | undefined): boolean {
  return item === undefined || planned === undefined ? item === planned : isSameEntry(item.planned, planned);
}
