import type { MediaTrack } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import { offeredCodec } from '../../webrtc/codecs.ts';
import { senderExtensions } from '../../webrtc/extensions.ts';
import { writeDescription, type SendingMedia, type UnusedMedia } from '../../webrtc/local-description.ts';
import { demandBundled, negotiateCodec, negotiateExtensions } from '../../webrtc/negotiate.ts';
import type { RemoteDescription } from '../../webrtc/remote-description.ts';
import type { Agreement, MediaPlan } from './agreement.ts';
import type { Playable } from './desk.ts';
import type { Selection } from './selection.ts';
import type { WebrtcSession } from './session.ts';

const KINDS = ['video', 'audio'] as const;

/**
 * How to send a playlist to a peer that made the offer: the first video codec that it takes, each kind in its first
 * section that takes it.
 * @throws nothingPlayable, notAcceptable
 */
export function planAnswer({ publisher, choices }: Playable, offer: RemoteDescription): Agreement {
  let best: Agreement | undefined;
  for (const selection of choices) {
    const plans = KINDS.flatMap((kind) => plan(kind, selection) ?? []);
    if (plans.length > (best?.plans.length ?? 0)) best = { selection, plans };
  }
  if (best === undefined) throw kilnError('nothingPlayable');
  demandBundled(offer, best.plans);
  const place = ({ mid }: MediaPlan) => offer.media.findIndex((media) => media.mid === mid);
  return { ...best, plans: best.plans.toSorted((a, b) => place(a) - place(b)) };

  function plan(kind: MediaPlan['kind'], selection: Selection): MediaPlan | undefined {
    const [track] = selection[kind];
    if (track === undefined) return undefined;
    for (const media of offer.media) {
      if (media.kind !== kind || !media.receives) continue;
      const codec = negotiateCodec(track.codec, media, publisher.config.rtx);
      if (codec === undefined) continue;
      const extensions = negotiateExtensions(media, senderExtensions(publisher.config));
      return { kind, mid: media.mid, codec, extensions };
    }
    return undefined;
  }
}

/** How to send a playlist where this server makes the offer: in its first video codec. */
export function planOffer({ publisher, choices: [selection] }: Playable): Agreement {
  const { rtx, bandwidthEstimation } = publisher.config;
  const extensions = senderExtensions(publisher.config);
  const present = KINDS.flatMap((kind): MediaTrack[] => selection[kind].slice(0, 1));
  const plans = present.map(({ type: kind, codec }, index) => ({
    kind,
    mid: `${index}`,
    codec: offeredCodec(codec, rtx, bandwidthEstimation),
    extensions: extensions.filter((extension) => extension.kind === kind),
  }));
  return { selection, plans };
}

/** @param setup this end's part in DTLS */
export function answerTo(offer: RemoteDescription, session: WebrtcSession, setup: 'active' | 'passive'): string {
  const sending = new Map<string, SendingMedia>(session.media.map((media) => [media.mid, media]));
  return describe(
    session,
    setup,
    offer.media.map((media) => sending.get(media.mid) ?? media),
    offer.bundle,
  );
}

export function offerOf(session: WebrtcSession): string {
  return describe(session, 'actpass', session.media);
}

function describe(
  session: WebrtcSession,
  setup: 'actpass' | 'active' | 'passive',
  media: readonly (SendingMedia | UnusedMedia)[],
  bundle?: readonly string[],
): string {
  return writeDescription({
    sessionId: session.createdTime,
    streamId: session.id,
    setup,
    ice: session.iceParameters,
    fingerprint: session.fingerprint,
    candidates: session.candidates,
    media,
    ...(bundle && { bundle }),
  });
}
