import { until } from '../../time/until.ts';
import { serve } from '../program.ts';
import { WhepViewer } from '../whep-viewer.ts';

/** What a viewer has seen of a stream. */
export interface Watched {
  readonly connected: boolean;
  /** Number of its newest frame. */
  readonly last: number;
  /** Frames that did not come, of those from its first one on. */
  readonly missing: number;
  /** Packets that were lost on the way from the node. */
  readonly lost: number;
}

const viewers = new Map<string, WhepViewer>();

const commands = {
  /** Opens a viewer and waits until it has seen a frame. */
  async watch({ name, url }: { name: string; url: string }): Promise<void> {
    const viewer = await WhepViewer.start(url);
    try {
      await until('the first frame', () => viewer.firstFrame > 0);
    } catch (error) {
      viewer.close();
      throw error;
    }
    viewers.set(name, viewer);
  },

  leave({ names }: { names: readonly string[] }): void {
    for (const name of names) {
      viewers.get(name)?.close();
      viewers.delete(name);
    }
  },

  /** What each has seen, by name. */
  report(_: undefined): Record<string, Watched> {
    const reports = [...viewers].map(([name, { connected, frames, lost }]): [string, Watched] => {
      const { seen, due } = frames.counts(frames.last);
      return [name, { connected, last: frames.last, missing: due - seen, lost }];
    });
    return Object.fromEntries(reports);
  },
};

export type NamedCommands = typeof commands;

serve(commands);
