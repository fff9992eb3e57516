import type { Application } from '../core/application.ts';
import { kilnError } from '../errors.ts';
import { BoundedMap } from '../lib/bounded-map.ts';
import type { RecordedMp4 } from './clip/recording.ts';
import { openMp4 } from './clip/recording.ts';
import type { ClipFile } from './clip/joined.ts';
import type { FileReads } from './file-reads.ts';
import type { Clip } from './query.ts';
import type { RecordedFile, RecordedFiles } from './recorded-files.ts';
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
  /** By id and node. */
  readonly #open = new BoundedMap<string, Promise<RecordedMp4>>(MAX_OPEN);

  constructor(options: ClipsOptions) {
    this.#options = options;
  }

  /** Finds the files that a clip plays. @param id of the only one that it may play @throws playbackNothing, playbackUnknown, playbackTooMany */
  async find(application: Application, stream: string, clip: Clip, id?: string): Promise<RecordedFile[]> {
    const { files, isComplete } = await this.#options.files.find(application, stream, clip, MAX_FILES);
    const wanted = id === undefined ? files : files.filter((file) => file.id === id);
    const played = playedOf(wanted, clip.start, clip.end);
    if (played.length === 0) throw kilnError(isComplete ? 'playbackNothing' : 'playbackUnknown');
    return played;
  }

  /** Opens a file for a clip. @throws ClipError, SourceError */
  async open({ vhost, name: app }: Application, file: RecordedFile): Promise<ClipFile> {
    const { id, startTime, node } = file;
    const key = node === undefined ? id : `${id} ${node.id} ${node.incarnation}`;
    let opening = this.#open.get(key);
    if (opening === undefined) {
      opening = openMp4(this.#options.reads.source({ vhost: vhost.name, app }, file));
      this.#open.set(key, opening);
      // those that wait for it learn why
      opening.catch(() => this.#open.delete(key));
    }
    return { recording: await opening, id, startTime };
  }
}
