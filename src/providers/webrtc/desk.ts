import { checkAccess } from '../../access/gate.ts';
import type { WebrtcBindConfig, WebrtcProviderConfig } from '../../config/model.ts';
import { internalName } from '../../core/application.ts';
import { isStreamName } from '../../core/names.ts';
import type { Registry } from '../../core/registry.ts';
import type { Connection } from '../../core/source.ts';
import type { InputStream } from '../../core/stream.ts';
import type { VirtualHost } from '../../core/vhost.ts';
import { KilnError, kilnError } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import type { StreamNames } from '../../origins/stream-names.ts';
import type { LiveProducers } from '../../webrtc/live-producers.ts';
import { PeerLink } from '../../webrtc/peer-link.ts';
import { PendingPeers } from '../../webrtc/pending-peers.ts';
import type { PeerRequest } from '../../webrtc/signalling/request.ts';
import type { WorkerPool } from '../../webrtc/worker-pool.ts';
import { connectionOf } from './connection.ts';
import { RelayAddresses } from './relay-addresses.ts';
import { IngestSession } from './session.ts';

export interface IngestDeskOptions {
  readonly registry: Registry;
  /** Gives the streams their names. */
  readonly names: StreamNames;
  readonly pool: WorkerPool;
  readonly producers: LiveProducers;
  readonly bind: WebrtcBindConfig;
  readonly log: Logger;
}

/** Where a publisher may publish. */
export interface IngestAdmission {
  readonly vhost: VirtualHost;
  readonly config: WebrtcProviderConfig;
}

/** Peers that send nothing else check every six seconds that they are heard, or more often (RFC 7675 section 5.1). */
const SILENT_MS = 8000;
/** For so long a check holds (RFC 7675 section 5.1): some may get lost while media comes. The session ends who sends none of that. */
const CONSENT_MS = 30_000;
/** What the way to a publisher is taken to carry: nothing but reports goes there. */
const BITRATE = 1_000_000;

/** Where every publisher passes, whatever the signalling: who may publish what, and how many. */
export class IngestDesk {
  readonly sessions = new Set<IngestSession>();
  readonly #options: IngestDeskOptions;
  readonly #relays: RelayAddresses;
  readonly #pending = new PendingPeers();
  #closed = false;

  constructor(options: IngestDeskOptions) {
    this.#options = options;
    this.#relays = new RelayAddresses(options.bind, options.log);
  }

  /** @throws vhostNotFound, accessDenied, applicationNotFound, providerDisabled, streamNameInvalid */
  admit({ hostName, app, stream }: PeerRequest): IngestAdmission {
    const vhost = this.#options.registry.resolve(hostName);
    if (vhost === undefined) throw kilnError('vhostNotFound', hostName);
    checkAccess(vhost, 'providers', 'webrtc');
    const config = vhost.demandConfig(app).providers.webrtc;
    if (config === undefined) throw kilnError('providerDisabled', 'WebRTC', internalName(vhost.name, app));
    if (!isStreamName(stream)) throw kilnError('streamNameInvalid', stream.slice(0, 80));
    return { vhost, config };
  }

  /**
   * Takes the name of a stream and opens a session for it.
   * @throws what StreamNames.publish() does, streamAlreadyThere for streamExists; mediaUnavailable
   */
  async open(
    { vhost, config }: IngestAdmission,
    { app, stream, origin, query, client }: PeerRequest,
  ): Promise<IngestSession> {
    const { names, pool, bind, producers, log } = this.#options;
    if (this.#closed) throw kilnError('mediaUnavailable');
    const settled = this.#pending.add(client);
    try {
      const way = pool.way(query.get('transport'), bind.iceCandidates);
      const worker = pool.pick(way, () => false);
      let link: PeerLink | undefined;
      const connection = (): Connection | undefined =>
        link && connectionOf(link.transport.iceSelectedTuple, this.#relays);
      const application = vhost.demandApplication(app);
      this.#dismissSilent(application.stream(stream));
      const input = await names
        .publish(
          application,
          stream,
          { type: 'WebRTC', kind: 'webrtc', url: `${origin}/${app}/${stream}`, connection },
          { replace: false, maxConnections: config.maxConnection, silence: 'continue' },
        )
        .catch((error: unknown) => {
          throw error instanceof KilnError && error.code === 'streamExists' ? kilnError('streamAlreadyThere') : error;
        });
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
      const streamLog = log.child({ stream: `${internalName(vhost.name, app)}/${stream}`, remote: client });
      const session = new IngestSession({ input, config, worker, link, producers, log: streamLog });
      if (session.closed || this.#closed) {
        session.close('the server is going away');
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

  /** Who has gone without a word, as browsers do whose page is closed, does not keep the next one out as long as it may be silent. */
  #dismissSilent(present: InputStream | undefined): void {
    for (const session of this.sessions) {
      if (session.input === present && session.silence > SILENT_MS)
        session.close('it fell silent, and another publisher came');
    }
  }

  /** Ends all sessions. Idempotent. */
  close(): void {
    this.#closed = true;
    for (const session of [...this.sessions]) session.close('the server is going away');
  }
}
