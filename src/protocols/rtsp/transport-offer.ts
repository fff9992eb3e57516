/** A transport that a client offers for a track (RFC 2326 section 12.39). */
export interface TransportOffer {
  readonly kind: 'tcp' | 'udp';
  /** The profile as the client writes it, such as `RTP/AVP/TCP`. */
  readonly profile: string;
  /** Channels of RTP and RTCP in the connection, or the client's ports; undefined where it names none. */
  readonly pair: readonly [number, number] | undefined;
  /** Media is to go from the client to the server. */
  readonly isRecord: boolean;
}

const PROFILE = /^RTP\/AVP(?:\/(TCP|UDP))?$/i;
const PAIR = /^(\d{1,5})(?:-(\d{1,5}))?$/;
const MAX_CHANNEL = 255;
const MAX_PORT = 65_535;
const MAX_OFFERS = 16;

/** Offers that a server can meet, in the client's order: unicast, over TCP or UDP. Others are left out. */
export function readTransportOffers(field: string): TransportOffer[] {
  return field.split(',', MAX_OFFERS).flatMap((text) => readOffer(text) ?? []);
}

function readOffer(text: string): TransportOffer | undefined {
  const [profile = '', ...parts] = text.split(';').map((part) => part.trim());
  const found = PROFILE.exec(profile);
  const names = parts.map((part) => part.toLowerCase());
  if (found === null || names.includes('multicast')) return undefined;
  const value = (name: string): string | undefined =>
    parts.find((_, index) => names[index]?.startsWith(`${name}=`))?.slice(name.length + 1);
  const isTcp = found[1]?.toUpperCase() === 'TCP';
  const mode = value('mode')?.replace(/"/g, '').toLowerCase();
  const pair = isTcp ? pairOf(value('interleaved'), 0, MAX_CHANNEL) : pairOf(value('client_port'), 1, MAX_PORT);
  return { kind: isTcp ? 'tcp' : 'udp', profile, pair, isRecord: mode === 'record' || mode === 'receive' };
}

/** `a-b`, or `a` and the next. */
function pairOf(text: string | undefined, min: number, max: number): readonly [number, number] | undefined {
  const found = PAIR.exec(text ?? '');
  if (found === null) return undefined;
  const first = Number(found[1]);
  const second = found[2] === undefined ? first + 1 : Number(found[2]);
  return first >= min && first <= max && second >= min && second <= max && first !== second
    ? [first, second]
    : undefined;
}
