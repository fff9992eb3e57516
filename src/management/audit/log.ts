import { mkdir, open, stat, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../log/log.ts';
import { isSealed, sealLine } from './chain.ts';
import { readTail } from './tail.ts';

/** Limit of calls that wait for a full or slow disk; further ones are only counted. */
const MAX_WAITING = 10_000;
const MAX_AT_ONCE = 500;
const RETRY_MS = 1000;

export interface AuditEntry {
  readonly user: string;
  readonly remote: string;
  readonly method: string;
  /** Path without its query. */
  readonly path: string;
  /** Names of created objects, which no path contains. */
  readonly names?: readonly string[];
  readonly status: number;
  readonly requestId: string;
  /** Node that the client called, if it forwarded the call to this one. */
  readonly takenBy?: string;
  /** Node that answered, if it was another one. */
  readonly answeredBy?: string;
}

export interface AuditLogOptions {
  readonly path: string;
  readonly key: string;
  readonly node: string;
  readonly log: Logger;
  /** Milliseconds between attempts to write. */
  readonly retryMs?: number;
}

/**
 * A file with a sealed line (`chain.ts`) for each call. Lines are written in the background, several at a time. A file that was
 * moved or emptied is followed by a new one, which names the last MAC of the one before.
 */
export class AuditLog {
  readonly #options: AuditLogOptions;
  #waiting: { readonly time: string; readonly entry: AuditEntry }[] = [];
  #lost = 0;
  #handle: FileHandle | undefined;
  /** Bytes of the file, and the MAC and number of its last line. */
  #size = 0;
  #mac = '';
  #seq = 0;
  /** Parts to write first: the end of an open line, and a line that says how the chain continues. */
  #prefix = '';
  #first: { readonly event: string; readonly [name: string]: unknown } | undefined;
  #isEnding = false;
  #hasFailed = false;
  #hasReportedOthers = false;
  #writing: Promise<void> | undefined;
  #closing = new AbortController();

  constructor(options: AuditLogOptions) {
    this.#options = options;
    this.#write();
  }

  add(entry: AuditEntry): void {
    if (this.#closing.signal.aborted) return;
    if (this.#waiting.length < MAX_WAITING) this.#waiting.push({ time: new Date().toISOString(), entry });
    else this.#lost += 1;
    this.#write();
  }

  /** Writes the waiting lines, as far as the disk accepts them. Idempotent. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return this.#writing;
    this.#closing.abort();
    await this.#writing;
    this.#isEnding = true;
    this.#writing = this.#end();
    await this.#writing;
  }

  async #end(): Promise<void> {
    const { path, log } = this.#options;
    while ((await this.#attempt()) && this.#waiting.length > 0);
    await this.#release();
    const lines = this.#waiting.length + this.#lost;
    if (lines > 0)
      log.error(
        { event: 'audit.lost', path, lines },
        `the audit log ${path} lacks the last ${lines} lines: it could not be written before this node stopped`,
      );
  }

  #write(): void {
    this.#writing ??= this.#run().finally(() => {
      this.#writing = undefined;
      if (this.#waiting.length > 0 && !this.#closing.signal.aborted) this.#write();
    });
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    do {
      if (await this.#attempt()) continue;
      if (signal.aborted) return;
      await delay(this.#options.retryMs ?? RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined);
    } while (this.#waiting.length > 0 || this.#lost > 0);
  }

  async #attempt(): Promise<boolean> {
    const { path, log } = this.#options;
    try {
      const handle = await this.#follow();
      await this.#append(handle);
      if (this.#hasFailed) log.info({ event: 'audit.resumed', path }, `the audit log ${path} is written again`);
      this.#hasFailed = false;
      return true;
    } catch (error) {
      await this.#release();
      const reason = (error as Error).message;
      if (!this.#hasFailed)
        log.error(
          { event: 'audit.failed', path, reason },
          `the audit log ${path} cannot be written: ${reason}. Calls of the API go on; ${MAX_WAITING} lines are kept, and further ones will be counted as lost`,
        );
      this.#hasFailed = true;
      return false;
    }
  }

  async #release(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close().catch(() => undefined);
  }

  async #follow(): Promise<FileHandle> {
    const { path, key, log } = this.#options;
    if (this.#handle !== undefined) {
      const [present, own] = await Promise.all([stat(path).catch(() => undefined), this.#handle.stat()]);
      if (present?.ino === own.ino && present.dev === own.dev && own.size === this.#size) return this.#handle;
      await this.#release();
      if (own.size > this.#size && !this.#hasReportedOthers) {
        this.#hasReportedOthers = true;
        log.error(
          { event: 'audit.failed', path },
          `something else writes to the audit log ${path}, which breaks its chain`,
        );
      }
    }
    await mkdir(dirname(path), { recursive: true });
    const handle = await open(path, 'a+', 0o600);
    this.#handle = handle;
    const { size } = await handle.stat();
    const { last, follows, torn, isOpen } = await readTail(handle, size);
    this.#size = size;
    this.#prefix = torn > 0 || isOpen ? '\n' : '';
    const cut = torn > 0 && { torn };
    if (last === undefined || (this.#mac !== '' && last.mac !== this.#mac)) {
      // does not continue the end of another chain: a check reports that
      this.#first = { event: 'begun', former: this.#mac, ...cut };
    } else {
      if (this.#mac === '' && (follows === undefined || !isSealed([key], follows, last)))
        log.error(
          { event: 'audit.unproved', path },
          `the last line of the audit log ${path} is not sealed with the present Key: the Key was changed, or lines were ` +
            'altered or removed. npm run audit says which',
        );
      this.#first = this.#mac === '' || cut ? { event: 'resumed', ...cut } : undefined;
      this.#mac = last.mac;
      this.#seq = Number(last.fields.seq) || 0;
    }
    return handle;
  }

  async #append(handle: FileHandle): Promise<void> {
    const { key, node } = this.#options;
    const lost = this.#lost;
    const taken = this.#waiting.slice(0, MAX_AT_ONCE);
    const now = new Date().toISOString();
    const lines = [
      ...(this.#first === undefined ? [] : [{ time: now, fields: this.#first }]),
      ...(lost > 0 ? [{ time: now, fields: { event: 'lost', lines: lost } }] : []),
      ...taken.map(({ time, entry }) => ({ time, fields: { event: 'call', ...entry } })),
      ...(this.#isEnding && taken.length === this.#waiting.length ? [{ time: now, fields: { event: 'ended' } }] : []),
    ];
    if (lines.length === 0) return;
    let [mac, seq] = [this.#mac, this.#seq];
    const texts = lines.map(({ time, fields }) => {
      const sealed = sealLine(key, mac, { seq: ++seq, time, node, ...fields });
      mac = sealed.mac;
      return sealed.text;
    });
    const bytes = Buffer.from(`${this.#prefix}${texts.join('\n')}\n`);
    try {
      await handle.appendFile(bytes);
      await handle.datasync();
    } catch (error) {
      // removes a partial write; what remains is found as a torn line
      await handle.truncate(this.#size).catch(() => undefined);
      throw error;
    }
    this.#size += bytes.length;
    [this.#mac, this.#seq, this.#prefix, this.#first] = [mac, seq, '', undefined];
    this.#waiting.splice(0, taken.length);
    this.#lost -= lost;
  }
}
