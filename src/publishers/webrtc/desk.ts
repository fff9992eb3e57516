import { checkAccess } from '../../access/gate.ts';
import type { WebrtcBindConfig } from '../../config/model.ts';
import type { Transport } from '../../config/values.ts';
import type { FindOutput } from '../../core/find-output.ts';
import type { Registry } from '../../core/registry.ts';
import { sessionId, sessionName } from '../../core/session.ts';
import type { OutputStream } from '../../core/stream.ts';
import { kilnError } from '../../errors.ts';
import type { SessionNames } from '../../origins/session-names.ts';
import type { WorkerPool } from '../../webrtc/worker-pool.ts';
import type { Selection } from './selection.ts';
import { WebrtcSession, type Agreement } from './session.ts';
import type { StreamPublisher } from './stream-publisher.ts';

/** What a viewer's URL and host name ask for. */
export interface ViewRequest {
  readonly hostName: string;
  readonly app: string;
  readonly stream: string;
  readonly playlist?: string;
  readonly query: URLSearchParams;
  /** Address that the request came from. */
  readonly client: string;
}

/** A viewer who may come in, once it is agreed how. */
export interface Admission {
  readonly publisher: StreamPublisher;
  /** What there is to agree on, the best first. */
  readonly choices: readonly [Selection, ...Selection[]];
  readonly id: string;
  /** The only protocol to reach the viewer over; undefined for any. */
  readonly protocol: Transport | undefined;
  readonly client: string;
}

/** Sessions that have not connected yet, on this node: what strangers can make it hold, and what one of them can. */
const MAX_PENDING = 1000;
const MAX_PENDING_OF_ONE = 256;

export interface ViewerDeskOptions {
  readonly registry: Registry;
  /** What is not on this node. */
  readonly find: FindOutput;
  readonly sessionNames: SessionNames;
  readonly pool: WorkerPool;
  readonly defaultTransport: WebrtcBindConfig['iceCandidates']['defaultTransport'];
  readonly publishers: ReadonlyMap<OutputStream, StreamPublisher>;
}

/** Where every viewer passes, whatever the signalling: who may see what, and how many. */
export class ViewerDesk {
  readonly #options: ViewerDeskOptions;
  #pending = 0;
  readonly #pendingOf = new Map<string, number>();

  constructor(options: ViewerDeskOptions) {
    this.#options = options;
  }

  /**
   * @throws vhostNotFound, applicationNotFound, streamNotFound, streamNotLive, accessDenied, nothingPlayable,
   * sessionExists, sessionRefused, tooManyConnections
   */
  async admit({ hostName, app, stream, playlist, query, client }: ViewRequest): Promise<Admission> {
    const { registry, publishers, find, sessionNames } = this.#options;
    const vhost = registry.resolve(hostName);
    if (vhost === undefined) throw kilnError('vhostNotFound', hostName);
    checkAccess(vhost, 'publishers', 'webrtc');
    const application = (await vhost.viewed(app, stream)) ?? vhost.application(app);
    const streamName = `${application.internalName}/${stream}`;
    if (application.config.publishers.webrtc === undefined) throw kilnError('streamNotFound', streamName);
    const output = application.output(stream) ?? (await find(application, stream, query));
    const publisher = output === undefined ? undefined : publishers.get(output);
    if (publisher === undefined) throw kilnError('streamNotLive', streamName);
    const id = sessionId(query);
    publisher.admit(id);
    if (sessionName(query) !== undefined) await sessionNames.take(application, publisher.stream, id);
    return {
      publisher,
      choices: publisher.choices(playlist),
      id,
      protocol: this.#protocol(query.get('transport')),
      client,
    };
  }

  /**
   * Opens a session that sends what has been agreed on.
   * @throws what `admit` may for a viewer who came in between, mediaUnavailable
   */
  async open(admission: Admission, { selection, plans }: Agreement): Promise<WebrtcSession> {
    const { publisher, id, protocol, client } = admission;
    publisher.admit(id);
    if (publisher.stream.closed) throw kilnError('mediaUnavailable');
    const worker = this.#options.pool.pick(protocol, (candidate) => publisher.feed.isFedTo(candidate));
    const settled = this.#await(client);
    const session = new WebrtcSession(id, publisher, selection, worker, protocol);
    session.once('connected', settled).once('close', settled);
    await session.open(plans);
    return session;
  }

  /**
   * Counts a session that is to connect; call the answer when it did or will not.
   * @throws mediaUnavailable when too many are to, of this client or in all
   */
  #await(client: string): () => void {
    const own = this.#pendingOf.get(client) ?? 0;
    if (this.#pending >= MAX_PENDING || own >= MAX_PENDING_OF_ONE) throw kilnError('mediaUnavailable');
    this.#pending++;
    this.#pendingOf.set(client, own + 1);
    let pending = true;
    return () => {
      if (!pending) return;
      pending = false;
      this.#pending--;
      const left = (this.#pendingOf.get(client) ?? 1) - 1;
      if (left === 0) this.#pendingOf.delete(client);
      else this.#pendingOf.set(client, left);
    };
  }

  /** A relay is not there: who asks for one gets what there is. */
  #protocol(wanted: string | null): Transport | undefined {
    const transport = (wanted ?? this.#options.defaultTransport).toLowerCase();
    if (transport !== 'udp' && transport !== 'tcp') return undefined;
    return this.#options.pool.workers.some((worker) => worker.candidatesOver(transport).length > 0) ? transport : undefined;
  }
}
