import { until } from '../../time/until.ts';
import { serve } from '../program.ts';
import { percentile } from '../statistics.ts';
import { WhepViewer } from '../whep-viewer.ts';

interface WebrtcOptions {
  readonly url: string;
  readonly count: number;
  /** They take audio, too. */
  readonly audio?: boolean;
  readonly atOnce?: number;
}

let viewers: WhepViewer[] = [];

const commands = {
  /** Opens viewers, some at a time, and waits until each has seen a frame. */
  async start({ url, count, audio = false, atOnce = 1 }: WebrtcOptions): Promise<void> {
    let left = count;
    const open = async (): Promise<void> => {
      while (left-- > 0) {
        const viewer = await WhepViewer.start(url, audio);
        viewers.push(viewer);
        await until('the first frame of a WebRTC viewer', () => viewer.firstFrame > 0);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, open));
  },

  /** Opens one viewer, and closes it. @returns milliseconds to the first key frame */
  async open({ url }: { url: string }): Promise<number> {
    const viewer = await WhepViewer.start(url);
    await until('the first key frame', () => viewer.firstFrame > 0);
    viewer.close();
    return viewer.firstFrame - viewer.started;
  },

  /** Forgets the delays so far. */
  reset(_: undefined): void {
    for (const viewer of viewers) viewer.delays = [];
  },

  /** @param lastFrame the newest frame that is counted */
  report({ lastFrame }: { lastFrame: number }) {
    const delays = viewers.flatMap((viewer) => viewer.delays);
    return {
      p50: percentile(delays, 0.5),
      p99: percentile(delays, 0.99),
      frames: viewers.map(({ frames }) => frames.counts(lastFrame)),
      lost: viewers.reduce((sum, { lost }) => sum + lost, 0),
      failed: viewers.filter(({ connected }) => !connected).length,
    };
  },

  stop(_: undefined): void {
    for (const viewer of viewers) viewer.close();
    viewers = [];
  },
};

export type WebrtcCommands = typeof commands;

serve(commands);
