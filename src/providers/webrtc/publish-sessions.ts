import type { Access } from '../../access/access.ts';
import type { PublisherGrant } from '../../access/publisher-grant.ts';
import type { WebrtcBindConfig, WebrtcProviderConfig } from '../../config/model.ts';
import { internalName } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import type { Connection } from '../../core/source.ts';
import type { InputStream } from '../../core/input-stream.ts';
import { KilnError, kilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import type { LiveProducers } from '../../webrtc/live-producers.ts';
import { PeerLink } from '../../webrtc/peer-link.ts';
import { PendingPeers } from '../../webrtc/pending-peers.ts';
import type { PeerRequest } from '../../webrtc/signalling/request.ts';
import type { WorkerPool } from '../../webrtc/worker-pool.ts';
import { connectionOf } from './connection.ts';
import { RelayAddresses } from './relay-addresses.ts';
import { IngestSession } from './session.ts';

export interface PublishSessionsOptions {
  readonly registry: Registry;
  readonly access: Access;
  readonly pool: WorkerPool;
  readonly producers: LiveProducers;
  readonly bind: WebrtcBindConfig;
  readonly log: Logger;
}

/**
 * Silence after which a publisher may be replaced: consent is checked every six seconds or more often (RFC 7675 section
 * 5.1).
 */
const SILENT_MS = 8000;
/**
 * Validity of a consent check (RFC 7675 section 5.1). Checks may get lost while media arrives; the session ends
 * publishers that send no media.
 */
const CONSENT_MS = 30_000;
/** Assumed bandwidth to a publisher, which receives reports only. */
const BITRATE = 1_000_000;

/** Admits publishers and owns their sessions, for all signalling. */
export class PublishSessions {
  readonly sessions = new Set<IngestSession>();
  readonly #options: PublishSessionsOptions;
  readonly #relays: RelayAddresses;
  readonly #pending = new PendingPeers();
  #closed = false;

  constructor(options: PublishSessionsOptions) {
    this.#options = options;
    this.#relays = new RelayAddresses(options.bind, options.log);
  }

  /**
   * Opens a session for an admitted publisher.
   * @param agree decides what the publisher sends, once it is admitted; @throws KilnError
   * @throws the errors of Access.admitPublisher(), PublisherGrant.publish() and `agree`, streamAlreadyThere for
   * streamExists; mediaUnavailable
   */
  async open<Plan>(
    request: PeerRequest,
    agree: (config: WebrtcProviderConfig) => Plan,
  ): Promise<{ readonly session: IngestSession; readonly plan: Plan }> {
    if (this.#closed) throw kilnError('mediaUnavailable');
    const grant = await this.#options.access.admitPublisher({
      ...request,
      direction: 'incoming',
      protocol: 'webrtc',
    });
    try {
      const plan = agree(grant.config);
      return { plan, session: await this.#open(grant, request) };
    } catch (error) {
      grant.refuse(error);
      throw error instanceof KilnError && error.code === 'streamExists' ? kilnError('streamAlreadyThere') : error;
    }
  }

  async #open(grant: PublisherGrant<'webrtc'>, { origin, query, client }: PeerRequest): Promise<IngestSession> {
    const { pool, bind, producers, log } = this.#options;
    const { vhost, app, stream, config } = grant;
    const { realAddress } = client;
    const settled = this.#pending.add(realAddress);
    try {
      await pool.ready();
      const way = pool.way(query.get('transport'), bind.iceCandidates);
      const worker = pool.pick(way, () => false);
      let link: PeerLink | undefined;
      const connection = (): Connection | undefined =>
        link && connectionOf(link.transport.iceSelectedTuple, this.#relays);
      this.#dismissSilent(vhost.applications.get(app)?.stream(stream));
      const url = `${origin}/${app}/${stream}`;
      const input = await grant.publish({ type: 'WebRTC', kind: 'webrtc', url, connection });
      try {
        link = await PeerLink.open(worker, {
          way,
          timeoutMs: Math.max(config.timeout, CONSENT_MS),
          initialBitrate: BITRATE,
        });
      } catch (error) {
        input.close('the session could not be opened');
        throw error;
      }
      const streamLog = log.child({ stream: `${internalName(vhost.name, app)}/${stream}`, remote: realAddress });
      const session = new IngestSession({ input, grant, config, worker, link, producers, log: streamLog });
      if (session.closed || this.#closed) {
        session.close('the server is closing');
        throw kilnError('mediaUnavailable');
      }
      this.sessions.add(session);
      session
        .once('connected', settled)
        .once('close', settled)
        .once('close', () => this.sessions.delete(session));
      return session;
    } catch (error) {
      settled();
      throw error;
    }
  }

  /**
   * Closes a silent session of the stream, so that a publisher that vanished, as browsers do whose page is closed, does
   * not block its successor until the timeout.
   */
  #dismissSilent(present: InputStream | undefined): void {
    for (const session of this.sessions) {
      if (session.input === present && session.silence > SILENT_MS)
        session.close('it stopped sending, and another publisher took over');
    }
  }

  close(): void {
    this.#closed = true;
    for (const session of [...this.sessions]) session.close('the server is closing');
  }
}
