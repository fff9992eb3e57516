import type { WebrtcBindConfig } from '../../config/model.ts';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import { isEstimated } from '../../webrtc/extensions.ts';
import { readOffer } from '../../webrtc/negotiate.ts';
import { peerRole } from '../../webrtc/peer-link.ts';
import type { RemoteDescription, RemoteMedia } from '../../webrtc/remote-description.ts';
import type {
  Answered,
  SignallingHandler,
  SessionObserver,
  Offered,
  ModuleSettings,
} from '../../webrtc/signalling/handler.ts';
import type { PeerRequest } from '../../webrtc/signalling/request.ts';
import { answerTo, offerOf, planAnswer, planOffer } from './description.ts';
import type { PlaySessions } from './play-sessions.ts';
import { playlistMessage } from './rendition-info.ts';
import type { WebrtcSession } from './session.ts';

/** Admits viewers: WHEP and `direction=recv` of the WebSocket signalling. */
export class PlayHandler implements SignallingHandler {
  readonly bind: WebrtcBindConfig;
  readonly #registry: Registry;
  readonly #sessions: PlaySessions;

  constructor(registry: Registry, sessions: PlaySessions, bind: WebrtcBindConfig) {
    this.#registry = registry;
    this.#sessions = sessions;
    this.bind = bind;
  }

  settings(hostName: string, app: string): ModuleSettings | undefined {
    return this.#registry.resolve(hostName)?.configOf(app)?.publishers.webrtc;
  }

  /** @throws errors of PlaySessions, sdpMalformed, nothingPlayable, mediaUnavailable */
  async answer(request: PeerRequest, sdp: string, onClose: () => void): Promise<Answered> {
    const { session, agreement } = await this.#sessions.open(request, (playable) => {
      const read = readOffer(sdp);
      return { ...planAnswer(playable, read), offer: read };
    });
    session.once('close', onClose);
    const { offer } = agreement;
    const role = peerRole(offer.setup);
    try {
      await session.connect({ fingerprint: offer.fingerprint, role, reports: true });
      const answer = answerTo(offer, session, role === 'server' ? 'active' : 'passive');
      return { session, sdp: answer, remoteUfrag: offer.iceUfrag };
    } catch (error) {
      session.close('the session could not be set up');
      throw error;
    }
  }

  /** @throws errors of PlaySessions, nothingPlayable, mediaUnavailable */
  async offer(request: PeerRequest, observer: SessionObserver): Promise<Offered> {
    const { session } = await this.#sessions.open(request, planOffer);
    session.once('connected', () => {
      observer.notify({ type: 'playlist', message: playlistMessage(session.stream, session.selection, session.auto) });
    });
    session.on('rendition', ({ name }, auto) => {
      observer.notify({ type: 'rendition_changed', message: { rendition_name: name, auto } });
    });
    session.once('close', (reason, end) => observer.closed(reason, end));
    return {
      session,
      sdp: offerOf(session),
      answer: (answer) => connect(session, answer),
      changeRendition: (name, auto) => session.changeRendition(name, auto),
    };
  }
}

/** Applies a viewer's answer: rejected media are not sent. @throws nothingPlayable when all are */
async function connect(session: WebrtcSession, answer: RemoteDescription): Promise<void> {
  let reports = false;
  for (const { mid, kind, rtpParameters } of session.media) {
    const section = answer.media.find((media) => media.mid === mid);
    const payloadType = rtpParameters.codecs[0]?.payloadType;
    const taken = section?.receives && section.codecs.some((codec) => codec.payloadType === payloadType);
    if (!taken) session.drop(mid);
    else if (kind === 'video') reports = isReported(section);
  }
  if (session.media.length === 0) throw kilnError('nothingPlayable');
  await session.connect({ fingerprint: answer.fingerprint, role: peerRole(answer.setup), reports });
}

/** Tests whether an answer keeps the reports that were offered. */
function isReported({ codecs, extensions }: RemoteMedia): boolean {
  return isEstimated({
    codecs: codecs.map(({ feedback }) => ({ rtcpFeedback: feedback })),
    headerExtensions: extensions,
  });
}
