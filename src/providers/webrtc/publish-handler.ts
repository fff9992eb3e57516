import type { WebrtcBindConfig } from '../../config/model.ts';
import type { Registry } from '../../core/registry.ts';
import { writeDescription, type ReceivingMedia, type UnusedMedia } from '../../webrtc/local-description.ts';
import { readOffer } from '../../webrtc/negotiate.ts';
import { peerRole } from '../../webrtc/peer-link.ts';
import type {
  Answered,
  SignallingHandler,
  SessionObserver,
  Offered,
  ModuleSettings,
} from '../../webrtc/signalling/handler.ts';
import type { PeerRequest } from '../../webrtc/signalling/request.ts';
import { offeredMedia, planAnswered, planIngest, receivingMedia } from './accepted.ts';
import type { PublishSessions } from './publish-sessions.ts';
import type { IngestSession } from './session.ts';

/** Handles signalling of publishers: WHIP and `direction=send` of the WebSocket signalling. */
export class PublishHandler implements SignallingHandler {
  readonly bind: WebrtcBindConfig;
  readonly #registry: Registry;
  readonly #publishers: PublishSessions;

  constructor(registry: Registry, publishers: PublishSessions, bind: WebrtcBindConfig) {
    this.#registry = registry;
    this.#publishers = publishers;
    this.bind = bind;
  }

  settings(hostName: string, app: string): ModuleSettings | undefined {
    return this.#registry.resolve(hostName)?.configOf(app)?.providers.webrtc;
  }

  /** @throws the errors of PublishSessions.open(), sdpMalformed, notAcceptable, mediaUnavailable */
  async answer(request: PeerRequest, sdp: string, onClose: () => void): Promise<Answered> {
    const {
      session,
      plan: { offer, plans },
    } = await this.#publishers.open(request, ({ rtx }) => {
      const read = readOffer(sdp);
      return { offer: read, plans: planIngest(read, rtx.enable) };
    });
    session.once('close', onClose);
    const role = peerRole(offer.setup);
    try {
      await session.accept(plans, { fingerprint: offer.fingerprint, role });
      const media = offer.media.map((section) => {
        const taken = plans.find(({ mid }) => mid === section.mid);
        return taken === undefined ? section : receivingMedia(taken);
      });
      const answer = describe(session, role === 'server' ? 'active' : 'passive', media, offer.bundle);
      return { session, sdp: answer, remoteUfrag: offer.iceUfrag };
    } catch (error) {
      session.close('the session could not be set up');
      throw error;
    }
  }

  /** @throws the errors of PublishSessions.open(), mediaUnavailable */
  async offer(request: PeerRequest, observer: SessionObserver): Promise<Offered> {
    const { session, plan: media } = await this.#publishers.open(request, ({ rtx }) => offeredMedia(rtx.enable));
    session.once('close', (reason, end) => observer.closed(reason, end));
    return {
      session,
      sdp: describe(session, 'actpass', media),
      answer: async (answer) =>
        session.accept(planAnswered(media, answer), { fingerprint: answer.fingerprint, role: peerRole(answer.setup) }),
      // publishers have no renditions
      changeRendition: async () => {},
    };
  }
}

function describe(
  session: IngestSession,
  setup: 'actpass' | 'active' | 'passive',
  media: readonly (ReceivingMedia | UnusedMedia)[],
  bundle?: readonly string[],
): string {
  return writeDescription({
    sessionId: session.createdTime,
    streamId: '*',
    setup,
    ice: session.iceParameters,
    fingerprint: session.fingerprint,
    candidates: session.candidates,
    media,
    ...(bundle && { bundle }),
  });
}
