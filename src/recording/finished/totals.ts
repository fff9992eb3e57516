import type { Entry } from './entry.ts';

/** Reads all entries of an application, by the folder of its index. @throws errors of the system */
type ReadAll = (folder: string, onEntry: (entry: Entry) => void) => Promise<void>;

/** Bytes of the local files of applications whose total was asked for, by the folders of their indexes. */
export class Totals {
  readonly #readAll: ReadAll;
  readonly #bytes = new Map<string, number>();
  readonly #measuring = new Map<string, Promise<number>>();

  constructor(readAll: ReadAll) {
    this.#readAll = readAll;
  }

  /** The first call reads all entries, the others none. @throws errors of the system */
  async of(folder: string): Promise<number> {
    const known = this.#bytes.get(folder);
    if (known !== undefined) return known;
    const measuring = this.#measuring.get(folder) ?? this.#measure(folder);
    this.#measuring.set(folder, measuring);
    return await measuring.finally(() => this.#measuring.delete(folder));
  }

  /** Resolves when entries may change: none is read for a total. Never rejects. */
  async measured(folder: string): Promise<void> {
    // who asked for the total hears of its failure
    await this.#measuring.get(folder)?.catch(() => undefined);
  }

  add(folder: string, entry: Entry): void {
    this.#resize(folder, keptBytes(entry));
  }

  remove(folder: string, entry: Entry): void {
    this.#resize(folder, -keptBytes(entry));
  }

  async #measure(folder: string): Promise<number> {
    let bytes = 0;
    await this.#readAll(folder, (entry) => (bytes += keptBytes(entry)));
    this.#bytes.set(folder, bytes);
    return bytes;
  }

  #resize(folder: string, by: number): void {
    const bytes = this.#bytes.get(folder);
    if (bytes !== undefined) this.#bytes.set(folder, bytes + by);
  }
}

/** Bytes that count towards MaxTotalSize. */
function keptBytes({ isLocal, size, dump }: Entry): number {
  return isLocal && dump === undefined ? size : 0;
}
