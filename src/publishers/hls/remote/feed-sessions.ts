import type { PeerCalls } from '../../../peers/peer-calls.ts';
import { FaultLog, type Logger } from '../../../log/log.ts';
import type { HlsForm } from '../package/hls-form.ts';
import { FeedSession, type FeedSource } from './feed-session.ts';
import { feedPath } from './feed-wire.ts';

/** Fewer than the connections that the cluster port takes, so that relays have room. */
const MAX_SESSIONS = 4096;

/** Sessions of other nodes that follow chunklists of streams that this node owns or relays. */
export class FeedSessions {
  readonly #sessions = new Set<FeedSession>();
  readonly #faults: FaultLog;
  #closed = false;

  constructor(form: HlsForm, calls: PeerCalls, source: FeedSource, log: Logger) {
    this.#faults = new FaultLog(log);
    calls.addStreams(feedPath(form), (stream, _, from) => {
      // a node that gets no feed makes calls instead
      if (this.#closed || this.#sessions.size >= MAX_SESSIONS) return void stream.destroy();
      const session: FeedSession = new FeedSession(stream, from, {
        source,
        faults: this.#faults,
        onClose: () => this.#sessions.delete(session),
      });
      this.#sessions.add(session);
    });
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Idempotent. */
  close(): void {
    this.#closed = true;
    for (const session of [...this.#sessions]) session.close();
    this.#faults.close();
  }
}
