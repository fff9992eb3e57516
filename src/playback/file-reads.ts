import Type, { type Static } from 'typebox';
import type { NodeIdentity } from '#cluster';
import { KilnError, kilnError } from '../errors.ts';
import { unlessAborted } from '../lib/unless-aborted.ts';
import type { Logger } from '../log/log.ts';
import { definePeerCall } from '../peers/peer-call.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import type { StoredFiles } from '../recording/delivery/stored-files.ts';
import { storedOf } from '../recording/finished/entry.ts';
import type { ApplicationNames } from '../recording/finished/recorded-index.ts';
import type { Recordings } from '../recording/finished/recordings.ts';
import { LocalFile, readInto, SourceError, type ByteSource } from './byte-source.ts';
import { ClipError } from './clip/error.ts';
import { hasParts, isPlayable, type RecordedFile } from './recorded-files.ts';
import { StoredReads } from './stored-reads.ts';
import { TsIndexes, type ScannedFile } from './ts/indexes.ts';
import { TsPartSource } from './ts/part.ts';

/** Bytes of one answer of another node. */
const MAX_PIECE = 256 * 1024;
/** Reads for other nodes at a time, each of which holds a piece. */
const MAX_READS = 64;
const TIMEOUT_MS = 5000;
/** Files that are open because they were read a moment ago. */
const MAX_OPEN = 256;
const IDLE_MS = 10_000;
/** Milliseconds after which another node gets the answer that a file is still being read for an index; and for how long that goes on without its next call. */
const ANSWER_MS = 2000;
const LINGER_MS = 10_000;

/** Reads bytes of a file that a node has. */
const BYTES = definePeerCall(
  'playback/bytes',
  Type.Object({
    vhost: Type.String(),
    app: Type.String(),
    id: Type.String(),
    offset: Type.Integer({ minimum: 0 }),
    length: Type.Integer({ minimum: 0, maximum: MAX_PIECE }),
    /** Number of a part of the file, whose bytes these are. */
    part: Type.Optional(Type.Integer({ minimum: 0 })),
  }),
  Type.Null(),
);

const Part = Type.Object({
  /** Seconds from the first frame of the file to that of the part. */
  begin: Type.Number(),
  /** Bytes of the part as an MP4 file. */
  size: Type.Number(),
});
type Part = Static<typeof Part>;

/** Lists the parts of a file that a node has; none yet while it is read for an index. */
const PARTS = definePeerCall(
  'playback/parts',
  Type.Object({ vhost: Type.String(), app: Type.String(), id: Type.String() }),
  Type.Object({ parts: Type.Optional(Type.Array(Part)) }),
);

/** A recording, or a part of it, that is read as an MP4 file. */
export interface FilePart {
  readonly begin: number;
  readonly source: ByteSource;
}

interface OpenFile {
  readonly file: Promise<ScannedFile>;
  /** The parts of the file, once they are known. */
  parts?: readonly (Part & { readonly source: ByteSource })[];
  reads: number;
  timer: NodeJS.Timeout | undefined;
}

export interface FileReadsOptions {
  readonly recordings: Pick<Recordings, 'find' | 'derived'>;
  readonly calls: PeerCalls;
  readonly stored: Pick<StoredFiles, 'reaches' | 'read'>;
  readonly log: Logger;
}

/**
 * Reads recorded files of this node, for other nodes as well, and those that other nodes have. What is in a bucket alone is read from
 * there by this node if it can, else by the one that knows of it.
 */
export class FileReads {
  readonly #options: FileReadsOptions;
  /** By the id of the recording, which no two applications have. */
  readonly #open = new Map<string, OpenFile>();
  readonly #stored: StoredReads;
  readonly #indexes: TsIndexes;
  #readsForOthers = 0;

  constructor(options: FileReadsOptions) {
    this.#options = options;
    this.#stored = new StoredReads(options.stored);
    const { calls, recordings, log } = options;
    this.#indexes = new TsIndexes({ derived: recordings.derived, log });
    calls.answerBytes(BYTES, async ({ vhost, app, id, part, offset, length }) => {
      const signal = part === undefined ? undefined : AbortSignal.timeout(LINGER_MS);
      const bytes = Buffer.allocUnsafeSlow(length);
      await this.#forOther(() => this.#fill({ vhost, app }, { id, part, offset }, bytes, signal));
      return { answer: null, bytes };
    });
    calls.answer(PARTS, async ({ vhost, app, id }) => {
      const finding = this.#parts({ vhost, app }, id, AbortSignal.timeout(LINGER_MS)).catch(shownFailure);
      const parts = await unlessAborted(finding, AbortSignal.timeout(ANSWER_MS));
      return parts === undefined ? {} : { parts: parts.map(({ begin, size }) => ({ begin, size })) };
    });
  }

  /**
   * The bytes of a recording, or of a part of it. Its file is opened when they are read.
   * @param stamp of the file that it must be; absent for any
   */
  source(
    { vhost, app }: ApplicationNames,
    { id, size, node, stored }: RecordedFile,
    part?: number,
    stamp?: string,
  ): ByteSource {
    const names = { vhost, app };
    if (node !== undefined && stored !== undefined && this.#options.stored.reaches(names, stored))
      return this.#stored.source(names, id, stored);
    const fill = async (offset: number, into: Buffer, signal?: AbortSignal): Promise<void> => {
      const place = { id, part, offset, stamp };
      await (node === undefined
        ? this.#fill(names, place, into, signal)
        : this.#fillThere(node, names, place, into, signal));
    };
    const read = async (offset: number, length: number, signal?: AbortSignal): Promise<Buffer> => {
      const bytes = Buffer.allocUnsafeSlow(length);
      await fill(offset, bytes, signal);
      return bytes;
    };
    return { size, read, readInto: fill };
  }

  /**
   * Distinguishes files that had the same name, inode and size, one after another; '' for those of other nodes and of buckets, which are
   * known by their tags.
   * @throws SourceError; playbackBusy
   */
  async stamp({ vhost, app }: ApplicationNames, { id, node, stored }: RecordedFile): Promise<string> {
    if (node !== undefined || stored !== undefined) return '';
    return await this.#use({ vhost, app }, id, async ({ file }) => (await file).stamp ?? '');
  }

  /**
   * Finds the parts of a recording: the file itself if it is an MP4 file.
   * @throws ClipError, SourceError; playbackBusy; the reason of the signal
   */
  async parts(names: ApplicationNames, file: RecordedFile, signal?: AbortSignal): Promise<readonly FilePart[]> {
    const stamp = (await this.stamp(names, file)) || undefined;
    if (!hasParts(file)) return [{ begin: 0, source: this.source(names, file, undefined, stamp) }];
    const { id, node } = file;
    const parts =
      node === undefined ? await this.#parts(names, id, signal) : await this.#partsThere(node, names, id, signal);
    return parts.map(({ begin, size }, part) => ({
      begin,
      source: this.source(names, { ...file, size }, part, stamp),
    }));
  }

  /**
   * Stores the index of an MPEG-TS file of this node that no viewer waits for.
   * @throws ClipError, SourceError; playbackBusy; the reason of the signal
   */
  prepare(names: ApplicationNames, id: string, signal: AbortSignal): Promise<void> {
    return this.#use(names, id, async ({ file }) => await this.#indexes.prepare(id, await file, signal));
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#stored.close();
    await this.#indexes.settled();
    await Promise.all([...this.#open.keys()].map((id) => this.#close(id)));
  }

  #fill(names: ApplicationNames, place: Place, into: Buffer, signal?: AbortSignal): Promise<void> {
    const { id, part, offset, stamp } = place;
    return this.#use(names, id, async (open) => {
      if (stamp !== undefined && (await open.file).stamp !== stamp)
        throw new SourceError(`it has changed since its index was read: ${id}`);
      if (part === undefined) return await readInto(await open.file, offset, into, signal);
      const found = (await this.#partsOf(id, open, signal))[part];
      if (found === undefined) throw new SourceError(`it has no part ${part}: ${id}`);
      await readInto(found.source, offset, into, signal);
    });
  }

  #parts(names: ApplicationNames, id: string, signal?: AbortSignal) {
    return this.#use(names, id, (open) => this.#partsOf(id, open, signal));
  }

  async #partsOf(id: string, open: OpenFile, signal?: AbortSignal) {
    if (open.parts !== undefined) return open.parts;
    const file = await open.file;
    const parts = await this.#indexes.find(id, file, signal);
    open.parts ??= parts.map((part) => {
      const source = new TsPartSource(file, part);
      return { begin: part.begin, size: source.size, source };
    });
    return open.parts;
  }

  async #use<T>(names: ApplicationNames, id: string, work: (open: OpenFile) => Promise<T>): Promise<T> {
    const open = this.#open.get(id) ?? this.#add(names, id);
    open.reads++;
    clearTimeout(open.timer);
    try {
      return await work(open);
    } finally {
      open.reads--;
      if (open.reads === 0 && this.#open.get(id) === open)
        open.timer = setTimeout(() => void this.#close(id), IDLE_MS).unref();
    }
  }

  /** @throws playbackBusy */
  #add(names: ApplicationNames, id: string): OpenFile {
    if (this.#open.size >= MAX_OPEN) {
      const idle = [...this.#open].find(([, { reads }]) => reads === 0);
      if (idle === undefined) throw kilnError('playbackBusy', MAX_OPEN);
      void this.#close(idle[0]);
    }
    const open: OpenFile = { file: this.#openFile(names, id), reads: 0, timer: undefined };
    this.#open.set(id, open);
    // those that read it learn why
    open.file.catch(() => this.#open.get(id) === open && this.#open.delete(id));
    return open;
  }

  async #openFile(names: ApplicationNames, id: string): Promise<ScannedFile> {
    const entry = await this.#options.recordings.find(names, id);
    if (entry === undefined || !isPlayable({ id, entry })) throw new SourceError(`it is gone: ${id}`);
    const stored = storedOf(entry);
    return stored === undefined ? await LocalFile.open(entry) : this.#stored.source(names, id, stored);
  }

  async #close(id: string): Promise<void> {
    const open = this.#open.get(id);
    if (open === undefined) return;
    this.#open.delete(id);
    clearTimeout(open.timer);
    const file = await open.file.catch(() => undefined);
    if (file instanceof LocalFile) await file.close();
  }

  /** @throws playbackBusy, playbackFailed: the other node learns nothing else */
  async #forOther(read: () => Promise<void>): Promise<void> {
    if (this.#readsForOthers >= MAX_READS) throw kilnError('playbackBusy', MAX_READS);
    this.#readsForOthers++;
    try {
      await read().catch(shownFailure);
    } finally {
      this.#readsForOthers--;
    }
  }

  async #fillThere(
    node: NodeIdentity,
    names: ApplicationNames,
    { id, part, offset }: Place,
    into: Buffer,
    signal?: AbortSignal,
  ): Promise<void> {
    const { length } = into;
    for (let done = 0; done < length;) {
      signal?.throwIfAborted();
      const place = { id, offset: offset + done, length: Math.min(MAX_PIECE, length - done) };
      const asked = { ...names, ...place, ...(part !== undefined && { part }) };
      const { bytes } = await this.#options.calls.callForBytes(node, BYTES, asked, TIMEOUT_MS).catch(unread);
      if (bytes.length !== asked.length) throw new SourceError(`node ${node.id} has sent ${bytes.length} bytes of it`);
      done += bytes.copy(into, done);
    }
    signal?.throwIfAborted();
  }

  async #partsThere(
    node: NodeIdentity,
    names: ApplicationNames,
    id: string,
    signal?: AbortSignal,
  ): Promise<readonly Part[]> {
    for (;;) {
      signal?.throwIfAborted();
      const asked = { vhost: names.vhost, app: names.app, id };
      const { parts } = await this.#options.calls.call(node, PARTS, asked, TIMEOUT_MS).catch(unread);
      if (parts !== undefined) return parts;
    }
  }
}

/** Bytes of a recording, or of a part of it. */
interface Place {
  readonly id: string;
  readonly part?: number | undefined;
  readonly offset: number;
  /** Stamp of the file that it must be; undefined for any. */
  readonly stamp?: string | undefined;
}

/** Throws what another node learns of a failure. @throws playbackFailed, or what it was */
function shownFailure(error: unknown): never {
  throw error instanceof SourceError || error instanceof ClipError ? kilnError('playbackFailed', error.message) : error;
}

/** @throws SourceError; playbackBusy */
function unread(cause: unknown): never {
  if (!(cause instanceof KilnError) || cause.code === 'playbackBusy') throw cause;
  throw new SourceError(cause.message, { cause });
}
