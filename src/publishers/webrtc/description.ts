import type { types } from 'mediasoup';
import { kilnError } from '../../errors.ts';
import { offeredCodec } from '../../webrtc/codecs.ts';
import { senderExtensions } from '../../webrtc/extensions.ts';
import { writeDescription, type SendingMedia, type UnusedMedia } from '../../webrtc/local-description.ts';
import { negotiateCodec, negotiateExtensions } from '../../webrtc/negotiate.ts';
import type { RemoteDescription } from '../../webrtc/remote-description.ts';
import type { Admission } from './desk.ts';
import type { MediaPlan, WebrtcSession } from './session.ts';

const KINDS = ['video', 'audio'] as const;
const USER = 'Kiln';

/**
 * How to send the tracks of a selection to a peer that made the offer: each kind in its first section that takes it.
 * @throws nothingPlayable
 */
export function planAnswer({ publisher, selection }: Admission, offer: RemoteDescription): MediaPlan[] {
  const plans: MediaPlan[] = [];
  for (const kind of KINDS) {
    const track = selection[kind];
    if (track === undefined) continue;
    for (const media of offer.media) {
      if (media.kind !== kind || !media.receives) continue;
      const codec = negotiateCodec(track.codec, media, publisher.config.rtx);
      if (codec === undefined) continue;
      const extensions = negotiateExtensions(media, senderExtensions(publisher.config));
      plans.push({ kind, mid: media.mid, codec, extensions });
      break;
    }
  }
  if (plans.length === 0) throw kilnError('nothingPlayable');
  const place = ({ mid }: MediaPlan) => offer.media.findIndex((media) => media.mid === mid);
  return plans.sort((a, b) => place(a) - place(b));
}

/** How to send the tracks of a selection where this server makes the offer. */
export function planOffer({ publisher, selection }: Admission): MediaPlan[] {
  const { rtx, bandwidthEstimation } = publisher.config;
  const extensions = senderExtensions(publisher.config);
  const present = KINDS.filter((kind) => selection[kind] !== undefined);
  return present.map((kind, index) => ({
    kind,
    mid: `${index}`,
    codec: offeredCodec((selection[kind] as NonNullable<typeof selection.video>).codec, rtx, bandwidthEstimation),
    extensions: extensions.filter((extension) => extension.kind === kind),
  }));
}

/** @param setup this end's part in DTLS */
export function answerTo(offer: RemoteDescription, session: WebrtcSession, setup: 'active' | 'passive'): string {
  const sending = new Map<string, SendingMedia>(session.media.map((media) => [media.mid, media]));
  return describe(session, setup, offer.media.map((media) => sending.get(media.mid) ?? media));
}

export function offerOf(session: WebrtcSession): string {
  return describe(session, 'actpass', session.media);
}

/** The DTLS role of a peer whose description says `setup`, where either end may choose. */
export function peerRole(setup: RemoteDescription['setup']): types.DtlsRole {
  return setup === 'passive' ? 'server' : 'client';
}

function describe(
  session: WebrtcSession,
  setup: 'actpass' | 'active' | 'passive',
  media: readonly (SendingMedia | UnusedMedia)[],
): string {
  return writeDescription({
    user: USER,
    sessionId: session.createdTime,
    streamId: session.id,
    setup,
    ice: session.iceParameters,
    fingerprint: session.fingerprint,
    candidates: session.candidates,
    media,
  });
}
