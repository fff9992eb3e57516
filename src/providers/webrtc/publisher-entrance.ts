import type { CrossDomainsConfig, WebrtcBindConfig } from '../../config/model.ts';
import type { Registry } from '../../core/registry.ts';
import { writeDescription, type ReceivingMedia, type UnusedMedia } from '../../webrtc/local-description.ts';
import type { RemoteDescription } from '../../webrtc/remote-description.ts';
import { peerRole } from '../../webrtc/peer-link.ts';
import type { Described, Entrance, Hearer, Offered } from '../../webrtc/signalling/entrance.ts';
import type { PeerRequest } from '../../webrtc/signalling/request.ts';
import { offeredMedia, planAnswered, planIngest, receivingMedia } from './accepted.ts';
import type { IngestDesk } from './desk.ts';
import type { IngestSession } from './session.ts';

/** Lets publishers in: WHIP and `direction=send` of the WebSocket signalling. */
export class PublisherEntrance implements Entrance {
  readonly bind: WebrtcBindConfig;
  readonly #registry: Registry;
  readonly #desk: IngestDesk;

  constructor(registry: Registry, desk: IngestDesk, bind: WebrtcBindConfig) {
    this.#registry = registry;
    this.#desk = desk;
    this.bind = bind;
  }

  crossDomains(hostName: string, app: string): CrossDomainsConfig | undefined {
    return this.#registry.resolve(hostName)?.applications.get(app)?.config.providers.webrtc?.crossDomains;
  }

  /** @throws what IngestDesk does, notAcceptable, mediaUnavailable */
  async answer(request: PeerRequest, offer: RemoteDescription, onClose: () => void): Promise<Described> {
    const { session, plan: plans } = await this.#desk.open(request, ({ rtx }) => planIngest(offer, rtx.enable));
    session.once('close', onClose);
    const role = peerRole(offer.setup);
    await session.accept(plans, { fingerprint: offer.fingerprint, role });
    const media = offer.media.map((section) => {
      const plan = plans.find(({ mid }) => mid === section.mid);
      return plan === undefined ? section : receivingMedia(plan);
    });
    return { session, sdp: describe(session, role === 'server' ? 'active' : 'passive', media, offer.bundle) };
  }

  /** @throws what IngestDesk does, mediaUnavailable */
  async offer(request: PeerRequest, hearer: Hearer): Promise<Offered> {
    const { session, plan: media } = await this.#desk.open(request, ({ rtx }) => offeredMedia(rtx.enable));
    session.once('close', (reason, lost) => hearer.closed(reason, lost));
    return {
      session,
      sdp: describe(session, 'actpass', media),
      answer: async (answer) =>
        session.accept(planAnswered(media, answer), { fingerprint: answer.fingerprint, role: peerRole(answer.setup) }),
      // publishers have none
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
