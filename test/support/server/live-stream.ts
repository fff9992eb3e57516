import type { OutputStream } from '../../../src/core/output-stream.ts';
import type { Registry } from '../../../src/core/registry.ts';
import { toSeconds } from '../../../src/core/timebase.ts';
import type { MediaTrack } from '../../../src/core/track.ts';
import type { Media } from '../webrtc/webrtc-media.ts';

const TICK_MS = 5;

export interface LiveMedia extends Media<MediaTrack> {
  /** Seconds by which its packets come after those of the same time of other media. */
  lag?: number;
}

interface Cursor extends LiveMedia {
  next: number;
  dts: number;
  muted?: boolean;
}

/** Media played in a loop, in real time, as a stream of an application. */
export class LiveStream {
  readonly output: OutputStream;
  readonly #cursors: Cursor[];
  readonly #started = performance.now();
  readonly #timer = setInterval(() => this.#tick(), TICK_MS);

  constructor(registry: Registry, media: readonly LiveMedia[], name = 'stream', app = 'app') {
    const application = [...registry.vhosts.values()].flatMap((vhost) => vhost.applications.get(app) ?? [])[0];
    if (application === undefined) throw new Error(`no application ${app}`);
    const input = application.publish(name, { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
    const tracks = media.map(({ track }) => track);
    input.setTracks(tracks);
    this.output = application.addOutput(input, name);
    this.output.setTracks(tracks);
    application.announce(this.output);
    this.#cursors = media.map((one) => Object.assign(Object.create(one) as LiveMedia, { next: 0, dts: 0 }));
  }

  /** Sends nothing more of a track, until that is taken back. */
  mute(name: string, muted = true): void {
    for (const cursor of this.#cursors) if (cursor.track.name === name) cursor.muted = muted;
  }

  close(reason = 'the test is over'): void {
    clearInterval(this.#timer);
    this.output.input.close(reason);
  }

  /** Sends what is due, in the order in which it comes. */
  #tick(): void {
    const now = (performance.now() - this.#started) / 1000;
    for (;;) {
      const [first] = this.#cursors.toSorted((a, b) => seconds(a) - seconds(b));
      if (first === undefined || seconds(first) > now) return;
      const frame = first.frames[first.next % first.frames.length];
      if (frame === undefined) return;
      const { track, dts } = first;
      const { data, key, duration, delay } = frame;
      first.next++;
      first.dts += duration;
      if (first.muted !== true) this.output.write({ track, dts, pts: dts + delay, duration, key, data });
    }
  }
}

function seconds({ dts, track, lag = 0 }: Cursor): number {
  return toSeconds(dts, track.timebase) + lag;
}
