import Type, { type Static } from 'typebox';
import type { Counters } from '../core/counters.ts';
import { LINK_COUNTS, plusCounts, worseState, type LinkCounts, type Links, type LinkState } from '../core/links.ts';

const LinkFields = {
  rtt: Type.Number({ description: 'Smoothed round-trip time, in milliseconds' }),
  capacity: Type.Integer({ description: 'Estimated capacity of the network, in bits per second; 0 while unknown' }),
  buffer: Type.Integer({
    description: 'Media in the buffer, in milliseconds: received and not due yet, or sent and not acknowledged',
  }),
  packets: Type.Integer({ description: 'Packets received, or sent' }),
  lost: Type.Integer({ description: 'Packets that were missing at first' }),
  retransmitted: Type.Integer({ description: 'Packets received, or sent, again' }),
  dropped: Type.Integer({ description: 'Packets given up: too late to be played, or to be sent' }),
  belated: Type.Integer({ description: 'Packets received after their time; 0 of senders' }),
  undecryptable: Type.Integer({ description: 'Packets received that were encrypted with another key; 0 of senders' }),
};

/** Figures of one SRT connection, as the management API shows them. */
export const LinkSummary = Type.Object(LinkFields, { description: 'Of an SRT connection, since it began' });
type Figures = Static<typeof LinkSummary>;

const LinksSummary = Type.Object(
  {
    connections: Type.Integer({ description: 'Connections at present' }),
    ...LinkFields,
  },
  { description: 'Counts are sums of all connections so far; `rtt`, `capacity` and `buffer` the worst at present' },
);
type Sums = Static<typeof LinksSummary>;

/** Figures of the SRT connections of a stream: of its sources, and of its viewers and pushes. */
export const SrtSummary = Type.Object({ in: Type.Optional(LinksSummary), out: Type.Optional(LinksSummary) });
type BothWays = Static<typeof SrtSummary>;

const NO_STATE: LinkState = { rttMs: 0, capacity: 0, bufferedMs: 0 };

export function linkSummary({ rttMs, capacity, bufferedMs }: LinkState, counts: LinkCounts): Figures {
  return { rtt: Math.round(rttMs * 100) / 100, capacity, buffer: bufferedMs, ...counts };
}

/** Undefined for a stream that has had no SRT connections. */
export function srtOf({ linksIn, linksOut }: Pick<Counters, 'linksIn' | 'linksOut'>): BothWays | undefined {
  return present(ofLinks(linksIn), ofLinks(linksOut));
}

/** Figures of a stream on several nodes. */
export function joinSrt(a: BothWays | undefined, b: BothWays | undefined): BothWays | undefined {
  return present(join(a?.in, b?.in), join(a?.out, b?.out));
}

function present(incoming: Sums | undefined, outgoing: Sums | undefined): BothWays | undefined {
  if (incoming === undefined && outgoing === undefined) return undefined;
  return { ...(incoming && { in: incoming }), ...(outgoing && { out: outgoing }) };
}

function ofLinks(links: Links): Sums | undefined {
  if (links.soFar === 0) return undefined;
  return { connections: links.size, ...linkSummary(links.worst ?? NO_STATE, links.counts) };
}

function join(a: Sums | undefined, b: Sums | undefined): Sums | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return {
    connections: a.connections + b.connections,
    ...linkSummary(worseState(stateOf(a), stateOf(b)), plusCounts(countsOf(a), countsOf(b))),
  };
}

function stateOf({ rtt, capacity, buffer }: Figures): LinkState {
  return { rttMs: rtt, capacity, bufferedMs: buffer };
}

function countsOf(summary: Figures): LinkCounts {
  return Object.fromEntries(LINK_COUNTS.map((name) => [name, summary[name]])) as LinkCounts;
}
