import type { ConfigCopy, ConfigState } from '../config-copy.ts';
import type { Rejections } from '../rejections.ts';
import { ConflictError, UnavailableError } from '../errors.ts';
import { ConfigListeners } from '../listeners.ts';
import type { Change, ConfigEntry, ConfigListener, ConfigStore, Expectation, Json } from '../types.ts';
import type { ConfigEpoch, TableChanges } from './changes.ts';
import type { Connection } from './connection.ts';
import { CopySaver } from './copy-saver.ts';
import type { Signatures } from './signatures.ts';
import { SCRIPTS } from './scripts.ts';
import type { Timing } from './timing.ts';

/** Entries that are signed anew in one step: other clients of Redis wait that long. */
const SIGNED_AT_ONCE = 200;

interface Refused {
  /** Its revision, as scripts read it. */
  readonly revision: number;
  /** Up to which revision this node knew the entry before anything was refused. */
  readonly known: number;
}

export interface RedisConfigOptions {
  readonly connection: Connection;
  readonly copy: ConfigCopy;
  readonly timing: Timing;
  readonly signatures: Signatures;
  readonly rejections: Rejections;
  /** Fetches what has changed and calls apply(). @throws UnavailableError */
  readonly pull: () => Promise<void>;
  /** Resolves when Redis has been restored, and after a while in any case. */
  readonly opened: () => Promise<void>;
  readonly isDegraded: () => boolean;
  readonly onFault: (error: Error) => void;
}

/** The configuration of the cluster: in Redis, with a durable copy on this node that follows it. */
export class RedisConfig implements ConfigStore {
  readonly #options: RedisConfigOptions;
  readonly #listeners: ConfigListeners;
  readonly #saver: CopySaver;
  /** With the revision up to which nothing is missing: that of the last one without refused entries. */
  #state: ConfigState;
  /** Up to which revision changes were fetched. */
  #seen: number;
  /** This node has compared what it knew at its start with everything that Redis has. */
  #isCompared = false;
  /** One write of this node at a time: each names the revision after the last, so they would outdate each other. */
  #turn: Promise<void> = Promise.resolve();
  /** Revision of the last write of this node. */
  #written = 0;
  /** Entries in Redis that this node rejects, by key. */
  readonly #refused = new Map<string, Refused>();
  /** The last fetch failed, although the loss of the connection was not noticed yet. */
  #missed = false;

  constructor(options: RedisConfigOptions) {
    this.#options = options;
    this.#state = options.copy.initial;
    this.#seen = this.#state.revision;
    this.#listeners = new ConfigListeners(options.onFault);
    this.#saver = new CopySaver(options.copy, options.onFault);
  }

  get stale(): boolean {
    return this.#missed || this.#options.isDegraded();
  }

  /** Which epoch and revision this node has whole. */
  get version(): { readonly epoch: number; readonly revision: number } {
    return this.#state;
  }

  /** Up to which revision changes were fetched. */
  get seen(): number {
    return this.#seen;
  }

  /** After which revision changes are to be fetched; 0 for everything. */
  get since(): number {
    return this.#isCompared ? this.#seen : 0;
  }

  get position(): string {
    return `${this.#state.epoch}.${this.#seen}`;
  }

  entries(): ReadonlyMap<string, ConfigEntry> {
    return this.#state.entries;
  }

  async sync(seen?: string): Promise<void> {
    if (seen !== this.position) await this.#pull();
    await this.#listeners.settled();
  }

  async write(changes: readonly Change[], expected: readonly Expectation[] = []): Promise<void> {
    const end = performance.now() + 2 * this.#options.timing.grace;
    const turn = this.#turn.then(() => this.#writeBefore(end, changes, expected));
    this.#turn = turn.catch(() => undefined);
    await turn;
    // it is written: if it cannot be read back, this node is stale until the next beat
    await this.#pull();
  }

  async #writeBefore(end: number, changes: readonly Change[], expected: readonly Expectation[]): Promise<void> {
    const { connection, signatures } = this.#options;
    const compared = [...expected, ...changes];
    const values = changes.map(({ value }) => (value === undefined ? undefined : JSON.stringify(value)));
    const signedFor = (revision: number): (string | number)[] => [
      ...expected.flatMap((entry) => [entry.key, this.#seenInStore(entry), 'expected', '']),
      ...changes.flatMap((entry, at) => {
        const value = values[at];
        const put = value === undefined ? ['removed', ''] : ['put', signatures.signEntry(entry.key, revision, value)];
        return [entry.key, this.#seenInStore(entry), ...put];
      }),
    ];
    let next = Math.max(this.#seen, this.#written) + 1;
    for (;;) {
      const known = [this.#state.epoch, this.#seen, next];
      const reply = (await connection.run(SCRIPTS.write, [...known, ...signedFor(next)])) as string[];
      const [outcome, key, revision] = reply;
      if (outcome === 'conflict') {
        const seen = compared.find((entry) => entry.key === key)?.seen;
        throw new ConflictError(`${key} is at revision ${revision}, not ${seen}`);
      }
      if (outcome === 'written') return void (this.#written = next);
      if (performance.now() > end)
        throw new UnavailableError(
          outcome === 'moved'
            ? 'other nodes write the configuration all the time'
            : 'Redis may have lost something, and the nodes have not all restored what they know yet',
        );
      // others have written since: the signature covers the revision that the entry gets
      if (outcome === 'moved') next = Number(revision) + 1;
      else await this.#options.opened();
    }
  }

  listen(listener: ConfigListener): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * Applies what Redis has. An older state than this node's own is ignored: Redis has lost it and will be restored. An entry
   * without a valid MAC is as if it were not there: what this node knows of it stays. So is one that was replaced or removed
   * before the last revision that this node knows, in this epoch or the one before.
   */
  apply(epoch: ConfigEpoch, { revision, full, entries }: TableChanges): void {
    this.#missed = false;
    const present = this.#state;
    const isSame = epoch.id === present.epoch;
    const known = this.#knownIn(epoch);
    if (isSame && (revision < this.#seen || (revision === this.#seen && !full))) return;
    const next = full ? new Map<string, ConfigEntry>() : new Map(present.entries);
    const toSign: (readonly [key: string, text: string])[] = [];
    if (full) this.#trustAllBut(new Set(entries.map(([key]) => key)));
    for (const [key, text] of entries) {
      const before = present.entries.get(key);
      const read = text === '' ? undefined : this.#read(key, text, known, before);
      if (text !== '' && read === undefined) {
        if (before !== undefined) next.set(key, before);
        continue;
      }
      this.#refused.delete(key);
      this.#options.rejections.trust('entries', key);
      if (read === undefined) next.delete(key);
      else next.set(key, read.entry);
      if (read?.needsSigning) toSign.push([key, text]);
    }
    const changed = full
      ? differences(present.entries, next)
      : entries.flatMap(([key]) => (this.#refused.has(key) ? [] : [key]));
    this.#seen = revision;
    this.#isCompared = true;
    // what is refused may be missing here: a copy without gaps is better, should Redis lose its own
    const whole = this.#refused.size === 0 ? revision : Math.min(revision, isSame ? present.revision : 1);
    this.#state = { entries: next, revision: whole, epoch: epoch.id };
    if (changed.length > 0 || !isSame) this.#saver.save(this.#state);
    this.#listeners.notify(changed);
    if (toSign.length > 0) void this.#signAnew(toSign);
  }

  /** Resolves when this disk has what was applied; nothing is applied after. */
  settled(): Promise<void> {
    return this.#saver.settled();
  }

  /** Sends this node's copy to a Redis that has lost its own. */
  async offer(epoch: number): Promise<void> {
    const { entries, epoch: from, revision } = this.#state;
    const list = [...entries].flatMap(([key, { revision: of, value }]) => [
      key,
      `${of} ${this.#options.signatures.signEntry(key, of, JSON.stringify(value))}`,
    ]);
    await this.#options.connection.run(SCRIPTS.offer, [epoch, from, revision, ...list]);
  }

  /** Up to which revision this node knows what led to a state of an epoch; 0 when it may know what was lost. */
  #knownIn({ id, from, revision }: ConfigEpoch): number {
    const { epoch } = this.#state;
    if (epoch === id) return this.#seen;
    if (epoch === 0 || epoch !== from) return 0;
    if (this.#seen <= revision) return this.#seen;
    this.#options.onFault(
      new Error(
        'Redis has lost the last changes of the configuration, which this node alone knew: the other nodes went on from ' +
          `revision ${revision}, so what this node has up to revision ${this.#seen} is replaced`,
      ),
    );
    return 0;
  }

  /**
   * @param known revision up to which this node knows all entries
   * @returns undefined when it is refused
   */
  #read(
    key: string,
    text: string,
    known: number,
    before: ConfigEntry | undefined,
  ): { readonly entry: ConfigEntry; readonly needsSigning: boolean } | undefined {
    const oldest = Math.min(known, this.#refused.get(key)?.known ?? known);
    const signed = this.#options.signatures.readEntry(key, text);
    if (signed === undefined) return this.#refuse(key, text, oldest, 'it has no valid MAC');
    const { revision, value, needsSigning } = signed;
    if (revision <= oldest && revision !== before?.revision)
      return this.#refuse(key, text, oldest, `it is that of revision ${revision}, which was changed or removed since`);
    return { entry: { revision, value: JSON.parse(value) as Json }, needsSigning };
  }

  #refuse(key: string, text: string, known: number, reason: string): undefined {
    this.#refused.set(key, { revision: Number(/^\S+/.exec(text)?.[0]) || 0, known });
    this.#options.rejections.refuse('entries', key, reason);
  }

  #trustAllBut(keys: ReadonlySet<string>): void {
    for (const key of this.#refused.keys()) if (!keys.has(key)) this.#refused.delete(key);
    this.#options.rejections.keepOnly('entries', keys);
  }

  /** Revision of an entry that the writer has seen, as scripts compare it: a rejected entry can be replaced. */
  #seenInStore({ key, seen }: Expectation): number {
    const refused = this.#refused.get(key)?.revision;
    const isPresent = seen === (this.#state.entries.get(key)?.revision ?? 0);
    return refused !== undefined && isPresent ? refused : seen;
  }

  /** Signs entries with the present secret, too, so that they stay valid when nodes know that one only. */
  async #signAnew(toSign: readonly (readonly [key: string, text: string])[]): Promise<void> {
    const { connection, signatures, onFault } = this.#options;
    try {
      for (let at = 0; at < toSign.length; at += SIGNED_AT_ONCE) {
        const list = toSign.slice(at, at + SIGNED_AT_ONCE).flatMap(([key, text]) => {
          const signed = signatures.readEntry(key, text);
          return signed === undefined
            ? []
            : [key, text, `${signed.revision} ${signatures.signEntry(key, signed.revision, signed.value)}`];
        });
        await connection.run(SCRIPTS.reseal, list);
      }
    } catch (error) {
      // the next fetch brings everything, and what is left is found again
      this.#isCompared = false;
      onFault(error as Error);
    }
  }

  async #pull(): Promise<void> {
    await this.#options.pull().catch(() => (this.#missed = true));
  }
}

function differences(before: ReadonlyMap<string, ConfigEntry>, after: ReadonlyMap<string, ConfigEntry>): string[] {
  const keys = new Set([...before.keys(), ...after.keys()]);
  return [...keys].filter((key) => JSON.stringify(before.get(key)) !== JSON.stringify(after.get(key)));
}
