import type { MediaTrack } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import { formatParameters, offeredCodec } from '../../webrtc/codecs.ts';
import { senderExtensions } from '../../webrtc/extensions.ts';
import {
  DATA_CHANNEL,
  writeDescription,
  type DataChannelMedia,
  type SendingMedia,
  type UnusedMedia,
} from '../../webrtc/local-description.ts';
import { demandBundled, negotiateCodec, negotiateExtensions } from '../../webrtc/negotiate.ts';
import type { RemoteDescription } from '../../webrtc/remote-description.ts';
import { mapsExtensionIds } from '../../webrtc/worker-program.ts';
import type { Agreement, EventPlan, MediaPlan } from './agreement.ts';
import type { Playable } from './play-sessions.ts';
import type { Selection } from './selection.ts';
import type { WebrtcSession } from './session.ts';

const KINDS = ['video', 'audio'] as const;
const DATA_PROTOCOL = /^(UDP|TCP)\/DTLS\/SCTP$/;
/** The port that mediasoup uses, and assumes for the peer. */
const SCTP_PORT = 5000;
/** Limit of an event, in JSON. */
const MAX_MESSAGE_BYTES = 256 * 1024;

/**
 * Plans how to send a playlist to a peer that made the offer: the first video codec that it accepts, each kind in its first
 * section that accepts it.
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
  const events = planEvents(offer);
  return { ...best, plans: best.plans.toSorted((a, b) => place(a) - place(b)), ...(events && { events }) };

  function plan(kind: MediaPlan['kind'], selection: Selection): MediaPlan | undefined {
    const [track] = selection[kind];
    if (track === undefined) return undefined;
    for (const media of offer.media) {
      if (media.kind !== kind || !media.receives) continue;
      const codec = negotiateCodec(track.codec, media, publisher.config.rtx, formatParameters(track));
      if (codec === undefined) continue;
      const extensions = negotiateExtensions(media, senderExtensions(publisher.config), mapsExtensionIds());
      return { kind, mid: media.mid, codec, extensions };
    }
    return undefined;
  }
}

/** Picks the first section for data channels that the transport of the media can carry. */
function planEvents({ media, bundle }: RemoteDescription): EventPlan | undefined {
  for (const { mid, protocol, formats, sctp } of media) {
    if (formats !== DATA_CHANNEL || !DATA_PROTOCOL.test(protocol) || !bundle.includes(mid)) continue;
    if (sctp?.port !== SCTP_PORT) continue;
    return { mid, protocol, maxMessageSize: Math.min(sctp.maxMessageSize || MAX_MESSAGE_BYTES, MAX_MESSAGE_BYTES) };
  }
  return undefined;
}

/** Plans how to send a playlist where this server makes the offer: in its first video codec. */
export function planOffer({ publisher, choices: [selection] }: Playable): Agreement {
  const { rtx, bandwidthEstimation } = publisher.config;
  const extensions = senderExtensions(publisher.config);
  const present = KINDS.flatMap((kind): MediaTrack[] => selection[kind].slice(0, 1));
  const plans = present.map((track, index) => ({
    kind: track.type,
    mid: `${index}`,
    codec: { ...offeredCodec(track.codec, rtx, bandwidthEstimation), parameters: formatParameters(track) },
    extensions: extensions.filter(({ kind }) => kind === track.type),
  }));
  return { selection, plans };
}

/** @param setup this end's part in DTLS */
export function answerTo(offer: RemoteDescription, session: WebrtcSession, setup: 'active' | 'passive'): string {
  const sending = new Map<string, SendingMedia | DataChannelMedia>(session.media.map((media) => [media.mid, media]));
  const { events } = session;
  if (events !== undefined) sending.set(events.mid, { ...events, sctpPort: SCTP_PORT });
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
  media: readonly (SendingMedia | DataChannelMedia | UnusedMedia)[],
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
