import type { OutputStream } from '../../core/output-stream.ts';
import type { Packet } from '../../core/packet.ts';
import type { Track } from '../../core/track.ts';
import { LiveTs } from '../../packaging/live-ts.ts';
import { SharedFeed, type SharedFeedOptions } from '../shared-feed.ts';

export interface TsFeedOptions extends SharedFeedOptions {
  /** Tracks for the viewers; those that MPEG-TS cannot carry are left out. */
  readonly choose: (tracks: readonly Track[]) => readonly Track[];
  /** Puts transport packets into the form that viewers get. */
  readonly frame?: (packets: Buffer) => Buffer;
  /** A frame cannot be carried. */
  readonly leftOut: (reason: string) => void;
}

/** MPEG-TS of one choice of tracks of an output stream: whole transport packets, with several audio frames in one. */
export class TsFeed extends SharedFeed {
  readonly #choose: TsFeedOptions['choose'];
  readonly #ts: LiveTs;
  #selected = new Set<number>();

  constructor(output: OutputStream, options: TsFeedOptions) {
    super(output, options);
    const { choose, frame, leftOut } = options;
    this.#choose = choose;
    this.#ts = new LiveTs({
      unit: (unit, data) => this.share({ ...unit, duration: 0, data: frame === undefined ? data : frame(data) }),
      leftOut,
    });
    this.begin();
  }

  packet(packet: Packet): void {
    if (this.#selected.has(packet.track.id)) this.#ts.write(packet);
  }

  protected override flush(): void {
    this.#ts.flush();
  }

  protected select(tracks: readonly Track[]): readonly Track[] {
    this.#ts.setTracks(this.#choose(tracks));
    const { carried } = this.#ts;
    this.#selected = new Set(carried.map(({ id }) => id));
    return carried;
  }
}
