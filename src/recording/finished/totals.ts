import { bytesOf, keeperOf, type Entry, type Keeper } from './entry.ts';

/** Reads all entries of an application, by the folder of its index. @throws errors of the system */
type ReadAll = (folder: string, onEntry: (entry: Entry) => void) => Promise<void>;

type Bytes = Record<Keeper, number>;

/** Bytes of the local files of applications whose total was asked for, by the folders of their indexes. */
export class Totals {
  readonly #readAll: ReadAll;
  readonly #bytes = new Map<string, Bytes>();
  readonly #measuring = new Map<string, Promise<Bytes>>();

  constructor(readAll: ReadAll) {
    this.#readAll = readAll;
  }

  /** The first call reads all entries, the others none. @throws errors of the system */
  async of(folder: string, keeper: Keeper): Promise<number> {
    const known = this.#bytes.get(folder);
    if (known !== undefined) return known[keeper];
    const measuring = this.#measuring.get(folder) ?? this.#measure(folder);
    this.#measuring.set(folder, measuring);
    return (await measuring.finally(() => this.#measuring.delete(folder)))[keeper];
  }

  /** Resolves when entries may change: none is read for a total. Never rejects. */
  async measured(folder: string): Promise<void> {
    // who asked for the total hears of its failure
    await this.#measuring.get(folder)?.catch(() => undefined);
  }

  add(folder: string, entry: Entry): void {
    this.#resize(folder, entry, 1);
  }

  remove(folder: string, entry: Entry): void {
    this.#resize(folder, entry, -1);
  }

  async #measure(folder: string): Promise<Bytes> {
    const bytes: Bytes = { file: 0, llhls: 0, hls: 0 };
    await this.#readAll(folder, (entry) => count(bytes, entry, 1));
    this.#bytes.set(folder, bytes);
    return bytes;
  }

  #resize(folder: string, entry: Entry, sign: 1 | -1): void {
    const bytes = this.#bytes.get(folder);
    if (bytes !== undefined) count(bytes, entry, sign);
  }
}

function count(bytes: Bytes, entry: Entry, sign: 1 | -1): void {
  if (entry.isLocal) bytes[keeperOf(entry)] += sign * bytesOf(entry);
}
