import type { Outlet } from './outlet.ts';
import type { TrackFeed } from './track-feed.ts';

/** mediasoup trusts a source's clock after three reports. */
const FIRST_REPORTS = 3;
const FIRST_INTERVAL_MS = 50;
const INTERVAL_MS = 1000;

/**
 * Times the sender reports of streams that are fed together. The reports leave as one packet, so that all have the same delay on
 * the network: mediasoup calculates from it how the times of the streams compare.
 */
export class Reports {
  readonly #feeds: readonly TrackFeed[];
  readonly #outlets: ReadonlySet<Outlet>;
  #count = 0;
  #next = 0;

  constructor(feeds: readonly TrackFeed[], outlets: ReadonlySet<Outlet>) {
    this.#feeds = feeds;
    this.#outlets = outlets;
  }

  /** Sends the first reports again, for an outlet that has none. */
  restart(): void {
    this.#count = 0;
    this.#next = 0;
  }

  /** Called after every frame. @param now milliseconds since the Unix epoch */
  tick(now: number): void {
    if (now < this.#next) return;
    this.#count++;
    this.#next = now + (this.#count < FIRST_REPORTS ? FIRST_INTERVAL_MS : INTERVAL_MS);
    const reports = this.#feeds.flatMap((feed) => feed.report(now) ?? []);
    const [first] = reports;
    if (first === undefined) return;
    const packet = reports.length === 1 ? first : Buffer.concat(reports);
    for (const { direct } of this.#outlets) direct.sendRtcp(packet);
  }
}
