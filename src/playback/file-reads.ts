import Type from 'typebox';
import type { NodeIdentity } from '#cluster';
import { KilnError, kilnError } from '../errors.ts';
import { definePeerCall } from '../peers/peer-call.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import type { StoredFiles } from '../recording/delivery/stored-files.ts';
import { storedOf } from '../recording/finished/entry.ts';
import type { ApplicationNames } from '../recording/finished/recorded-index.ts';
import type { Recordings } from '../recording/finished/recordings.ts';
import { LocalFile, SourceError, type ByteSource } from './byte-source.ts';
import { isPlayable, type RecordedFile } from './recorded-files.ts';
import { StoredReads } from './stored-reads.ts';

/** Bytes of one answer of another node. */
const MAX_PIECE = 256 * 1024;
/** Reads for other nodes at a time, each of which holds a piece. */
const MAX_READS = 64;
const TIMEOUT_MS = 5000;
/** Files that are open because they were read a moment ago. */
const MAX_OPEN = 256;
const IDLE_MS = 10_000;

/** Reads bytes of a file that a node has. */
const BYTES = definePeerCall(
  'playback/bytes',
  Type.Object({
    vhost: Type.String(),
    app: Type.String(),
    id: Type.String(),
    offset: Type.Integer({ minimum: 0 }),
    length: Type.Integer({ minimum: 0, maximum: MAX_PIECE }),
  }),
  Type.Null(),
);

interface OpenFile {
  readonly file: Promise<ByteSource>;
  reads: number;
  timer: NodeJS.Timeout | undefined;
}

export interface FileReadsOptions {
  readonly recordings: Pick<Recordings, 'find'>;
  readonly calls: PeerCalls;
  readonly stored: Pick<StoredFiles, 'reaches' | 'read'>;
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
  #readsForOthers = 0;

  constructor(options: FileReadsOptions) {
    this.#options = options;
    this.#stored = new StoredReads(options.stored);
    options.calls.answerBytes(BYTES, async ({ vhost, app, id, offset, length }) => {
      const bytes = await this.#forOther(() => this.#read({ vhost, app }, id, offset, length));
      return { answer: null, bytes };
    });
  }

  /** The bytes of a recording. Its file is opened when they are read. */
  source({ vhost, app }: ApplicationNames, { id, size, node, stored }: RecordedFile): ByteSource {
    const names = { vhost, app };
    if (node !== undefined && stored !== undefined && this.#options.stored.reaches(names, stored))
      return this.#stored.source(names, id, stored);
    return {
      size,
      read: (offset, length, signal) =>
        node === undefined
          ? this.#read(names, id, offset, length, signal)
          : this.#readThere(node, names, id, offset, length, signal),
    };
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#stored.close();
    await Promise.all([...this.#open.keys()].map((id) => this.#close(id)));
  }

  async #read(
    names: ApplicationNames,
    id: string,
    offset: number,
    length: number,
    signal?: AbortSignal,
  ): Promise<Buffer> {
    const open = this.#open.get(id) ?? this.#add(names, id);
    open.reads++;
    clearTimeout(open.timer);
    try {
      return await (await open.file).read(offset, length, signal);
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

  async #openFile(names: ApplicationNames, id: string): Promise<ByteSource> {
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
  async #forOther(read: () => Promise<Buffer>): Promise<Buffer> {
    if (this.#readsForOthers >= MAX_READS) throw kilnError('playbackBusy', MAX_READS);
    this.#readsForOthers++;
    try {
      return await read();
    } catch (error) {
      throw error instanceof SourceError ? kilnError('playbackFailed', error.message) : error;
    } finally {
      this.#readsForOthers--;
    }
  }

  async #readThere(
    node: NodeIdentity,
    names: ApplicationNames,
    id: string,
    offset: number,
    length: number,
    signal?: AbortSignal,
  ): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (let done = 0; done < length;) {
      signal?.throwIfAborted();
      const asked = { ...names, id, offset: offset + done, length: Math.min(MAX_PIECE, length - done) };
      const { bytes } = await this.#options.calls.callForBytes(node, BYTES, asked, TIMEOUT_MS).catch(unread);
      if (bytes.length !== asked.length) throw new SourceError(`node ${node.id} has sent ${bytes.length} bytes of it`);
      pieces.push(bytes);
      done += bytes.length;
    }
    signal?.throwIfAborted();
    return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
  }
}

/** @throws SourceError; playbackBusy */
function unread(cause: unknown): never {
  if (!(cause instanceof KilnError) || cause.code === 'playbackBusy') throw cause;
  throw new SourceError(cause.message, { cause });
}
