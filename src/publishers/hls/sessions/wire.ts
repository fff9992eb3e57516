import Type, { type Static } from 'typebox';
import { GRANT_STATE } from '../../../access/grant.ts';
import { WEBHOOK_SESSION } from '../../../access/webhook-session.ts';
import type { ChunklistForm } from '../../../packaging/playlist.ts';
import { definePeerCall, STREAM_FIELDS, type PeerCall } from '../../../peers/peer-call.ts';
import type { HlsForm } from '../package/hls-form.ts';

/** Longest hold of a call for the next state of a chunklist: players give up after 10 seconds. */
export const HELD_MS = 8000;
/** Players in one report. */
export const MAX_REPORTED = 1000;

/** Forms of a chunklist, as `forms` of a call names them. */
export const FORMS: readonly ChunklistForm[] = ['full', 'delta', 'legacy'];

export interface StreamPath {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
}

const Form = Type.Union([Type.Literal('full'), Type.Literal('delta'), Type.Literal('legacy')]);
/** Past of a media playlist. The bytes are a journal. */
export const PastState = Type.Object({
  run: Type.String(),
  /** Number of the oldest segment. */
  first: Type.Integer({ minimum: 0 }),
  /** Seconds of the longest segment in any media playlist of the stream. */
  longest: Type.Number({ minimum: 0, maximum: 1e6 }),
  /** Number of times that segments were listed in place of gaps. */
  fills: Type.Optional(Type.Integer({ minimum: 0 })),
  /** Digest of the segments before a number that was asked about, as of `PastList.digest`: the bytes have none then. */
  digest: Type.Optional(Type.String({ maxLength: 100 })),
});
export type PastState = Static<typeof PastState>;

const Counted = Type.Object({ msn: Type.Integer(), parts: Type.Integer() });

export const ChunklistState = Type.Object({
  run: Type.String(),
  edition: Type.Number(),
  interrupted: Type.Boolean(),
  /** Seconds. */
  targetDuration: Type.Number({ minimum: 1 }),
  position: Type.Object({
    newest: Type.Optional(Counted),
    open: Type.Optional(Counted),
    partTarget: Type.Number(),
    ended: Type.Optional(Type.Boolean()),
  }),
  texts: Type.Object({
    full: Type.Optional(Type.String()),
    delta: Type.Optional(Type.String()),
    legacy: Type.Optional(Type.String()),
  }),
  /** The owner sends the stream to enough nodes: from now on the caller gets it from one of those. */
  atCapacity: Type.Optional(Type.Boolean()),
});
export type ChunklistState = Static<typeof ChunklistState>;

/** Master playlist for any player, and the token of the player that the call names, if any. */
export const MasterState = Type.Object({
  run: Type.String(),
  template: Type.String(),
  token: Type.Optional(Type.String()),
});
export type MasterState = Static<typeof MasterState>;

/** Players that a node serves: token, bytes since the last report, milliseconds since it was seen. */
export const Report = Type.Object({
  players: Type.Array(
    Type.Tuple([Type.String({ maxLength: 1024 }), Type.Number({ minimum: 0 }), Type.Number({ minimum: 0 })]),
    {
      maxItems: MAX_REPORTED,
    },
  ),
  /** Bytes of players that are not counted. */
  bytes: Type.Number({ minimum: 0 }),
});
export type Report = Static<typeof Report>;

const Verdict = Type.Union([
  Type.Literal('counted'),
  Type.Literal('uncounted'),
  Type.Literal('kicked'),
  Type.Literal('refused'),
  Type.Literal('full'),
]);
/** Answer about a player; `refused`: for now, for example while another viewer has its name. */
export type Verdict = Static<typeof Verdict>;

/** Player that asks for a master playlist. */
export const Newcomer = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 128 }),
  /** False for a HEAD request, which is not counted. */
  plays: Type.Boolean(),
  guarded: Type.Boolean(),
  /** Virtual host of the stream, if the player asked another one. */
  vhost: Type.Optional(Type.String()),
  /** Passes to the owner of the stream if there is a master playlist and the player plays. */
  grant: GRANT_STATE,
});
export type Newcomer = Static<typeof Newcomer>;

const HandedSessions = Type.Array(
  Type.Object({
    id: Type.String({ minLength: 1, maxLength: 128 }),
    idleMs: Type.Number({ minimum: 0 }),
    grants: Type.Array(
      Type.Object({
        until: Type.Optional(Type.Number()),
        openings: Type.Array(Type.Pick(WEBHOOK_SESSION, ['id', 'vhost'])),
      }),
    ),
  }),
  { maxItems: MAX_REPORTED },
);

/** Answers about the players of a report, in order. */
export const Verdicts = Type.Object({ players: Type.Array(Verdict) });

const File = {
  ...STREAM_FIELDS,
  file: Type.String(),
  /** Milliseconds for which the owner may hold the call until the file exists. */
  holdMs: Type.Optional(Type.Number({ minimum: 0, maximum: HELD_MS })),
  /** Incarnation of the owner, as the caller knows it: the called node gets the stream from there. */
  relayOf: Type.Optional(Type.String()),
};

export const PlaylistRequest = {
  ...File,
  /** Mark of the known position: the answer is a later one. */
  after: Type.Optional(Type.String()),
  forms: Type.Array(Form, { maxItems: 3 }),
  /** Players that the caller counts itself. */
  viewers: Type.Optional(Type.Integer({ minimum: 0 })),
};

export const MediaDescription = {
  kind: Type.Union([Type.Literal('part'), Type.Literal('segment'), Type.Literal('init')]),
  type: Type.Union([Type.Literal('video'), Type.Literal('audio'), Type.Literal('ts'), Type.Literal('subtitle')]),
};

/** Calls to the owner of a stream, or to a node that relays it. `null` is the answer while the playlist has not begun. */
export interface PlaylistCalls {
  /** Gets a master playlist, and the token of a session with a name or openings. `start` as of `MasterRequest`. */
  readonly master: typeof MASTER;
  /** Gets a chunklist once it differs from the mark `after`, or after the longest hold. */
  readonly chunklist: typeof CHUNKLIST;
  /** Gets a part, a segment or an initialization; a call for a hinted part is held. */
  readonly media: typeof MEDIA;
  /** Gets segments that players rewind to, from a number on. */
  readonly past: typeof PAST;
  readonly report: typeof REPORT;
  /** Reports to the home of the players instead of the owner. */
  readonly visits: typeof VISITS;
  /** Gets the ids of sessions that the server ended. */
  readonly kicked: typeof KICKED;
  /** Takes over sessions with openings, from the former owner of the stream. */
  readonly sessions: typeof SESSIONS;
}

const MASTER = definePeerCall(
  'master',
  Type.Object({ ...File, session: Type.Optional(Newcomer), start: Type.Optional(Type.Number()) }),
  Type.Union([MasterState, Type.Null()]),
);
const CHUNKLIST = definePeerCall('chunklist', Type.Object(PlaylistRequest), Type.Union([ChunklistState, Type.Null()]));
const MEDIA = definePeerCall('media', Type.Object(File), Type.Object(MediaDescription));
const PAST = definePeerCall(
  'past',
  Type.Object({
    ...File,
    from: Type.Integer({ minimum: 0, maximum: 1e14 }),
    /** The digest of the segments before it is asked for; older nodes answer with segments. */
    until: Type.Optional(Type.Integer({ minimum: 0, maximum: 1e14 })),
  }),
  PastState,
);
const REPORT = definePeerCall('report', Type.Object({ ...STREAM_FIELDS, report: Report }), Verdicts);
const VISITS = definePeerCall('visits', REPORT.request, Verdicts);
const KICKED = definePeerCall('kicked', Type.Object(STREAM_FIELDS), Type.Array(Type.String()));
const SESSIONS = definePeerCall('sessions', Type.Object({ ...STREAM_FIELDS, sessions: HandedSessions }), Type.Null());

export function callsOf({ kind }: HlsForm): PlaylistCalls {
  const named = <C extends PeerCall>(call: C): C => ({ ...call, name: `${kind}/${call.name}` });
  return {
    master: named(MASTER),
    chunklist: named(CHUNKLIST),
    media: named(MEDIA),
    past: named(PAST),
    report: named(REPORT),
    visits: named(VISITS),
    kicked: named(KICKED),
    sessions: named(SESSIONS),
  };
}
