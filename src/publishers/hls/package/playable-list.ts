import type { ChunklistForm } from '../../../packaging/playlist.ts';
import type { OnLeft } from '../answer/played-stream.ts';
import type { Text } from '../answer/text.ts';
import type { Position } from '../blocking-reload/chunklist-position.ts';
import type { Queue } from '../blocking-reload/queue.ts';
import { Repeats } from '../blocking-reload/repeats.ts';
import type { Wait } from '../blocking-reload/wait.ts';
import { Waiters, type Outcome } from '../blocking-reload/waiters.ts';
import type { PackagedList } from './package.ts';

/** State of a stream that its media playlists share. */
export interface ListContext {
  readonly continues: boolean;
  readonly interrupted: boolean;
  /** Seconds. */
  readonly targetDuration: number;
  readonly queue: Queue;
}

/** A media playlist of a stream, with the requests that wait for its next state. */
export abstract class PlayableList<C extends ListContext> implements PackagedList {
  readonly waiters = new Waiters();
  readonly repeats = new Repeats();
  position: Position | undefined;
  protected readonly context: C;

  constructor(context: C) {
    this.context = context;
  }

  get continues(): boolean {
    return this.context.continues;
  }

  get interrupted(): boolean {
    return this.context.interrupted;
  }

  get leads(): boolean {
    return false;
  }

  get targetDuration(): number {
    return this.context.targetDuration;
  }

  abstract text(form: ChunklistForm, rewinds: boolean): Text;

  wait(ready: () => boolean, onLeft: OnLeft, wait: Wait): Promise<Outcome> {
    return this.context.queue.wait(this.waiters, ready, onLeft, wait);
  }
}
