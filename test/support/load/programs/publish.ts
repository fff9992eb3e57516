import { setTimeout as delay } from 'node:timers/promises';
import { loadClip } from '../clip.ts';
import { LivePublisher } from '../live-publisher.ts';
import { serve } from '../program.ts';

interface PublishOptions {
  readonly port: number;
  /** File of `encodeClip`. */
  readonly clip: string;
  readonly streams: readonly string[];
  /** `app` when not given. */
  readonly app?: string;
}

/** Publishers of one clip under names of their own. */
const publishers = new Map<string, LivePublisher>();

const commands = {
  /** Starts them one after the other, so that their frames do not come all at once. @returns when each began */
  async start({ port, clip: file, streams, app }: PublishOptions): Promise<number[]> {
    const clip = await loadClip(file);
    const started: number[] = [];
    for (const stream of streams) {
      const publisher = await LivePublisher.start(port, stream, clip, 0, app);
      publishers.set(stream, publisher);
      started.push(publisher.started);
      if (streams.length > 1) await delay(1000 / streams.length);
    }
    return started;
  },

  /** @returns frames sent, and how many are still connected */
  count(_: undefined): { frames: number; connected: number } {
    const all = [...publishers.values()];
    return {
      frames: all.reduce((sum, { frames }) => sum + frames, 0),
      connected: all.filter(({ connected }) => connected).length,
    };
  },

  stop(streams: readonly string[]): void {
    for (const stream of streams) {
      publishers.get(stream)?.close();
      publishers.delete(stream);
    }
  },
};

export type PublishCommands = typeof commands;

serve(commands);
