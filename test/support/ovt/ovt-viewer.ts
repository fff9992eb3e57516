import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import { OvtClient } from '../../../src/providers/ovt/client.ts';
import { until } from '../time/until.ts';

const log = pino({ level: 'silent' });

/** Plays a stream from a node's OVT port until the test ends, and notes when what came. */
export class OvtViewer {
  /** When each packet came, by `performance.now()`. */
  readonly arrivals: number[] = [];
  /** Packets that were earlier in their stream's time than one before them. */
  regressions = 0;
  ended = false;
  close: () => void = () => {};
  readonly #latest = new Map<number, number>();

  static async play(t: Pick<ExecutionContext, 'teardown'>, url: string): Promise<OvtViewer> {
    const viewer = new OvtViewer();
    // it gives up soon: on a busy machine it has to ask again
    const client = await until(`an answer of ${url}`, () =>
      OvtClient.connect(url, { log }).catch((error: Error) => {
        if (!error.message.endsWith('in time')) throw error;
        return undefined;
      }),
    );
    viewer.close = () => client.close();
    t.teardown(viewer.close);
    await client.play({
      tracks: () => {},
      packet: ({ track, dts }) => {
        viewer.arrivals.push(performance.now());
        if (dts <= (viewer.#latest.get(track.id) ?? -Infinity)) viewer.regressions += 1;
        viewer.#latest.set(track.id, dts);
      },
      end: () => void (viewer.ended = true),
    });
    return viewer;
  }

  /** How many packets came since a moment. */
  since(moment: number): number {
    return this.arrivals.length - (this.arrivals.findLastIndex((at) => at <= moment) + 1);
  }

  /** The longest time in which nothing came since a moment, in milliseconds. */
  gapSince(moment: number): number {
    const first = Math.max(
      0,
      this.arrivals.findLastIndex((at) => at <= moment),
    );
    const times = this.arrivals.slice(first);
    return Math.max(0, ...times.slice(1).map((at, index) => at - (times[index] as number)));
  }
}
