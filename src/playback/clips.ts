import type { Application } from '../core/application.ts';
import { kilnError } from '../errors.ts';
import { BoundedMap } from '../lib/bounded-map.ts';
import type { RecordedMp4 } from './clip/recording.ts';
import { openMp4 } from './clip/recording.ts';
import type { ClipFile } from './clip/joined.ts';
import type { FilePart, FileReads } from './file-reads.ts';
import type { Clip } from './query.ts';
import { nothingOf, type RecordedFile, type RecordedFiles } from './recorded-files.ts';
import { playedOf } from './spans.ts';

/** Files of one clip. */
const MAX_FILES = 1000;
/** Recordings whose index is kept, each of some hundred kilobytes at most. */
const MAX_OPEN = 32;

export interface ClipsOptions {
  readonly files: RecordedFiles;
  readonly reads: FileReads;
}

/** Finds and opens the recordings of clips. */
export class Clips {
  readonly #options: ClipsOptions;
  /** Parts of files, by id, node and stamp. */
  readonly #parts = new BoundedMap<string, readonly FilePart[]>(MAX_FILES);
  /** By id, node, stamp and part. */
  readonly #open = new BoundedMap<string, Promise<RecordedMp4>>(MAX_OPEN);

  constructor(options: ClipsOptions) {
    this.#options = options;
  }

  /** Finds the files that a clip plays. @param id of the only one that it may play @throws as `nothingOf`; playbackTooMany, playbackTooWide */
  async find(application: Application, stream: string, clip: Clip, id?: string): Promise<RecordedFile[]> {
    const { files, ...found } = await this.#options.files.find(application, stream, clip, MAX_FILES);
    const wanted = id === undefined ? files : files.filter((file) => file.id === id);
    const played = playedOf(wanted, clip.start, clip.end);
    if (played.length === 0) throw nothingOf(found);
    return played;
  }

  /**
   * Opens a file for a clip: what it has of the clip's time, in parts where its formats change.
   * @throws ClipError, SourceError; playbackBusy; the reason of the signal
   */
  async open(application: Application, file: RecordedFile, clip: Clip, signal: AbortSignal): Promise<ClipFile[]> {
    const { key, parts } = await this.#partsOf(application, file, signal);
    const opened: ClipFile[] = [];
    for (const [part, { begin }] of parts.entries()) {
      const next = parts[part + 1];
      const isBefore = next !== undefined && file.startTime + next.begin * 1000 <= clip.start;
      if (isBefore || (part > 0 && file.startTime + begin * 1000 >= clip.end)) continue;
      opened.push(await this.#openPart(file, key, part, parts[part] as FilePart));
    }
    return opened;
  }

  /** Opens a part of a file again, by its id. @throws fileNotFound; as `open` */
  async reopen(application: Application, file: RecordedFile, id: string, signal: AbortSignal): Promise<ClipFile> {
    const { key, parts } = await this.#partsOf(application, file, signal);
    const part = parts.findIndex((_, number) => idOf(file, number) === id);
    if (part < 0) throw kilnError('fileNotFound');
    return await this.#openPart(file, key, part, parts[part] as FilePart);
  }

  async #partsOf(
    { vhost, name: app }: Application,
    file: RecordedFile,
    signal: AbortSignal,
  ): Promise<{ readonly key: string; readonly parts: readonly FilePart[] }> {
    const { reads } = this.#options;
    const names = { vhost: vhost.name, app };
    const key = `${keyOf(file)} ${await reads.stamp(names, file)}`;
    const known = this.#parts.get(key);
    if (known !== undefined) return { key, parts: known };
    const parts = await reads.parts(names, file, signal);
    this.#parts.set(key, parts);
    return { key, parts };
  }

  /** @param of key of the file */
  async #openPart(file: RecordedFile, of: string, part: number, { begin, source }: FilePart): Promise<ClipFile> {
    const key = `${of} ${part}`;
    let opening = this.#open.get(key);
    if (opening === undefined) {
      opening = openMp4(source);
      this.#open.set(key, opening);
      // those that wait for it learn why
      opening.catch(() => this.#open.delete(key));
    }
    return { recording: await opening, id: idOf(file, part), startTime: file.startTime + begin * 1000 };
  }
}

function keyOf({ id, node }: RecordedFile): string {
  return node === undefined ? id : `${id} ${node.id} ${node.incarnation}`;
}

/** Id of a part, the same on all nodes. */
function idOf({ id }: RecordedFile, part: number): string {
  return part === 0 ? id : `${id}-${part}`;
}
