import { mkdir, readdir, readFile, rename, unlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import Type, { type Static } from 'typebox';
import Value from 'typebox/value';

const Entry = Type.Object({
  /** Where the file is as long as it is not finished. */
  temporary: Type.String(),
  root: Type.String(),
  /** Templates of its paths below the root. */
  file: Type.String(),
  info: Type.String(),
  transactionId: Type.String(),
  id: Type.String(),
  metadata: Type.Optional(Type.String()),
  vhost: Type.String(),
  app: Type.String(),
  stream: Type.String(),
  source: Type.String(),
  sequence: Type.Integer(),
  createdTime: Type.Number(),
  startTime: Type.Number(),
});
/** A file that this node writes. */
export type JournalEntry = Static<typeof Entry>;

/** The files that this node writes at the moment: after a crash its next start finds and finishes them. */
export class Journal {
  readonly #folder: string;

  /** @param folder of this node alone */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** @throws what the system says */
  async add(entry: JournalEntry): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    const path = this.#path(entry);
    await writeFile(`${path}.new`, JSON.stringify(entry));
    await rename(`${path}.new`, path);
  }

  async remove(entry: Pick<JournalEntry, 'temporary'>): Promise<void> {
    await unlink(this.#path(entry)).catch(() => undefined);
  }

  async list(): Promise<JournalEntry[]> {
    const names = await readdir(this.#folder).catch(() => []);
    const entries: JournalEntry[] = [];
    for (const name of names.filter((one) => one.endsWith('.json'))) {
      try {
        const entry: unknown = JSON.parse(await readFile(join(this.#folder, name), 'utf8'));
        if (Value.Check(Entry, entry)) entries.push(entry);
      } catch {
        // it was cut off before its file was begun
      }
    }
    return entries;
  }

  #path({ temporary }: Pick<JournalEntry, 'temporary'>): string {
    return join(this.#folder, `${basename(temporary)}.json`);
  }
}
