import type { SessionGrant } from '../../access/access.ts';
import { Flow } from '../../core/counters.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Session } from '../../core/session.ts';
import { kilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import { FeedDelivery, type DeliveredFeed } from '../feed-delivery.ts';
import { StallWatch } from '../stall-watch.ts';
import type { MediaLink } from './link.ts';

export interface HttpViewerOptions {
  /** Starts with the last key frame; with the next one without it. */
  readonly fromLastKey: boolean;
  readonly byPlaylist: boolean;
  readonly feed: () => DeliveredFeed;
  /** Bytes at the start of the media, in the framing of the link; none for MPEG-TS. */
  readonly head: ((feed: DeliveredFeed) => Buffer) | undefined;
  readonly log: Logger;
  readonly onClose: () => void;
}

/** Beyond it packets wait in the viewer's queue, where late ones are dropped. */
const MAX_UNSENT_BYTES = 256 * 1024;

/** One viewer of FLV or MPEG-TS over HTTP or WebSocket. Closing is idempotent. */
export class HttpViewer implements Session {
  readonly kind = 'flv';
  readonly id: string;
  readonly createdTime = Date.now();
  readonly out = new Flow(this.createdTime);
  readonly byPlaylist: boolean;
  readonly #link: MediaLink;
  readonly #output: OutputStream;
  readonly #grant: Pick<SessionGrant<unknown>, 'enter' | 'limit' | 'end'>;
  readonly #options: HttpViewerOptions;
  #feed: DeliveredFeed | undefined;
  #delivery: FeedDelivery | undefined;
  #uncount: (() => void) | undefined;
  readonly #stall = new StallWatch();
  #hasSent = false;
  #closed = false;

  constructor(grant: SessionGrant<{ readonly output: OutputStream }>, link: MediaLink, options: HttpViewerOptions) {
    this.id = grant.id;
    this.byPlaylist = options.byPlaylist;
    this.#link = link;
    this.#output = grant.found.output;
    this.#grant = grant;
    this.#options = options;
  }

  /** Begins the response. @throws what `SessionGrant.enter` does, before anything was sent */
  play(): void {
    const { fromLastKey, log } = this.#options;
    this.#grant.enter();
    if (this.#output.closed) throw kilnError('streamNotFound', this.#output.name);
    this.#link.begin(() => this.#writable());
    this.#uncount = this.#output.addSession(this);
    log.info({ session: this.id }, 'the HTTP viewer plays');
    this.#feed = this.#options.feed();
    this.#delivery = new FeedDelivery(this.#feed, {
      fromLastKey,
      send: (data) => this.#send(data),
      ended: (reason) => this.end(reason),
    });
    // it may have ended at once
    if (this.#closed) this.#delivery.close();
    else this.#grant.limit((reason) => this.end(reason));
  }

  kick(): void {
    this.#output.input.kicked.add(this.id);
    this.end('the viewer was disconnected by the management API');
  }

  /** Closes a viewer that has stalled. */
  check(now: number): void {
    if (!this.#stall.isStalled(now, this.#link.unsent)) return;
    this.close('the viewer does not receive the stream', 'warn');
    this.#link.destroy();
  }

  /** The viewer has left. @param level of the reason in the log */
  close(reason: string, level: 'info' | 'warn' = 'info'): void {
    if (this.#closed) return;
    this.#closed = true;
    const dropped = this.#delivery?.dropped ?? 0;
    this.#delivery?.close();
    this.#uncount?.();
    this.#options.log[level](
      { session: this.id, sent: this.out.totalBytes, ...(dropped > 0 && { dropped }) },
      `the HTTP viewer has left: ${reason}`,
    );
    this.#grant.end(reason);
    this.#options.onClose();
  }

  /** Ends the response: with the server, the stream, the admission or the session. */
  end(reason: string): void {
    if (this.#closed) return;
    this.close(reason);
    this.#link.end(reason);
  }

  #send(data: Buffer): boolean {
    const now = Date.now();
    const { counters } = this.#output;
    if (!this.#hasSent) this.#begin(now);
    this.out.add(data.length, now);
    counters.sentTo('flv', data.length, now);
    this.#link.send(data);
    const { unsent } = this.#link;
    if (unsent <= MAX_UNSENT_BYTES) return true;
    this.#stall.full(unsent);
    return false;
  }

  /** Sends what goes before the first media, when its tracks are known. */
  #begin(now: number): void {
    this.#hasSent = true;
    this.#output.counters.viewing.joined('flv', Math.max(0, now - this.createdTime) / 1000);
    const { head } = this.#options;
    if (head !== undefined && this.#feed !== undefined) this.#link.send(head(this.#feed));
  }

  #writable(): void {
    this.#stall.taken();
    this.#delivery?.resume();
  }
}
