import type { Access } from '../../access/access.ts';
import type { WebrtcBindConfig } from '../../config/model.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import { kilnError } from '../../errors.ts';
import { PendingPeers } from '../../webrtc/pending-peers.ts';
import type { PeerRequest } from '../../webrtc/signalling/request.ts';
import type { WorkerPool } from '../../webrtc/worker-pool.ts';
import type { Agreement } from './agreement.ts';
import type { Selection } from './selection.ts';
import { WebrtcSession } from './session.ts';
import type { StreamPublisher } from './stream-publisher.ts';

export interface Playable {
  readonly publisher: StreamPublisher;
  /** Best first. */
  readonly choices: readonly [Selection, ...Selection[]];
}

export interface PlaySessionsOptions {
  readonly access: Access;
  readonly pool: WorkerPool;
  readonly iceCandidates: WebrtcBindConfig['iceCandidates'];
  readonly publishers: ReadonlyMap<OutputStream, StreamPublisher>;
}

/** Opens the sessions of all viewers, whatever the signalling. */
export class PlaySessions {
  readonly #options: PlaySessionsOptions;
  readonly #pending = new PendingPeers();

  constructor(options: PlaySessionsOptions) {
    this.#options = options;
  }

  /**
   * Opens a session for a viewer that is admitted.
   * @param agree plans how media are sent, for a viewer that is admitted; @throws KilnError
   * @throws errors of Access.admitSession() and `agree`, playlistNotFound, nothingPlayable, mediaUnavailable
   */
  async open<A extends Agreement>(
    request: PeerRequest,
    agree: (playable: Playable) => A,
  ): Promise<{ readonly session: WebrtcSession; readonly agreement: A }> {
    const { access, pool, iceCandidates, publishers } = this.#options;
    const grant = await access.admitSession(
      { ...request, direction: 'outgoing', protocol: 'webrtc' },
      (output, _application, playlist) => {
        const publisher = publishers.get(output);
        return publisher && { publisher, choices: publisher.choices(playlist) };
      },
    );
    try {
      await pool.ready();
      const { publisher } = grant.found;
      const agreement = agree(grant.found);
      const { selection, plans, events } = agreement;
      const way = pool.way(request.query.get('transport'), iceCandidates);
      grant.enter();
      if (publisher.stream.closed) throw kilnError('mediaUnavailable');
      const worker = pool.pick(way, (candidate) => publisher.feed.isFedTo(candidate));
      const settled = this.#pending.add(request.client.realAddress);
      const session = new WebrtcSession(grant.id, publisher, selection, worker, way);
      session.once('connected', settled).once('close', settled).once('close', grant.end);
      await session.open(plans, events);
      grant.limit((reason) => session.close(reason, 'expired'));
      return { session, agreement };
    } catch (error) {
      grant.refuse(error);
      throw error;
    }
  }
}
