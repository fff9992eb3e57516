import { checkAccess } from '../../access/gate.ts';
import type { WebrtcBindConfig } from '../../config/model.ts';
import type { FindOutput } from '../../core/find-output.ts';
import type { Registry } from '../../core/registry.ts';
import { sessionId, sessionName } from '../../core/session.ts';
import type { OutputStream } from '../../core/stream.ts';
import { kilnError } from '../../errors.ts';
import type { SessionNames } from '../../origins/session-names.ts';
import type { Way } from '../../webrtc/candidate.ts';
import { PendingPeers } from '../../webrtc/pending-peers.ts';
import type { PeerRequest } from '../../webrtc/signalling/request.ts';
import type { WorkerPool } from '../../webrtc/worker-pool.ts';
import type { Agreement } from './agreement.ts';
import type { Selection } from './selection.ts';
import { WebrtcSession } from './session.ts';
import type { StreamPublisher } from './stream-publisher.ts';

/** A viewer who may come in, once it is agreed how. */
export interface Admission {
  readonly publisher: StreamPublisher;
  /** What there is to agree on, the best first. */
  readonly choices: readonly [Selection, ...Selection[]];
  readonly id: string;
  /** How to reach the viewer. */
  readonly way: Way;
  readonly client: string;
}

export interface ViewerDeskOptions {
  readonly registry: Registry;
  /** What is not on this node. */
  readonly find: FindOutput;
  readonly sessionNames: SessionNames;
  readonly pool: WorkerPool;
  readonly iceCandidates: WebrtcBindConfig['iceCandidates'];
  readonly publishers: ReadonlyMap<OutputStream, StreamPublisher>;
}

/** Where every viewer passes, whatever the signalling: who may see what, and how many. */
export class ViewerDesk {
  readonly #options: ViewerDeskOptions;
  readonly #pending = new PendingPeers();

  constructor(options: ViewerDeskOptions) {
    this.#options = options;
  }

  /**
   * @throws vhostNotFound, applicationNotFound, streamNotFound, streamNotLive, accessDenied, nothingPlayable,
   * sessionExists, sessionRefused, tooManyConnections
   */
  async admit({ hostName, app, stream, playlist, query, client }: PeerRequest): Promise<Admission> {
    const { registry, publishers, find, sessionNames, pool, iceCandidates } = this.#options;
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
      way: pool.way(query.get('transport'), iceCandidates),
      client,
    };
  }

  /**
   * Opens a session that sends what has been agreed on.
   * @throws what `admit` may for a viewer who came in between, mediaUnavailable
   */
  async open(admission: Admission, { selection, plans }: Agreement): Promise<WebrtcSession> {
    const { publisher, id, way, client } = admission;
    publisher.admit(id);
    if (publisher.stream.closed) throw kilnError('mediaUnavailable');
    const worker = this.#options.pool.pick(way, (candidate) => publisher.feed.isFedTo(candidate));
    const settled = this.#pending.add(client);
    const session = new WebrtcSession(id, publisher, selection, worker, way);
    session.once('connected', settled).once('close', settled);
    await session.open(plans);
    return session;
  }
}
