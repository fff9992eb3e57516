import { Type, type Static } from 'typebox';

/** A call of a control server about a session that opens, and what it asked for. */
export const OPENING_CALL = Type.Object({
  /** The client, in the words of calls to control servers. */
  client: Type.Object({
    address: Type.String(),
    port: Type.Number(),
    real_ip: Type.String(),
    user_agent: Type.Optional(Type.String()),
  }),
  /** As the control server calls it: `WebRTC`, `RTMP` ... */
  protocol: Type.String(),
  direction: Type.Union([Type.Literal('incoming'), Type.Literal('outgoing')]),
  url: Type.String(),
  /** Where the control server sent the client. */
  new_url: Type.Optional(Type.String()),
  /** When the client asked, in milliseconds since the epoch. */
  time: Type.Number(),
});

export type OpeningCall = Static<typeof OPENING_CALL>;

/**
 * A session that a control server has allowed, and whose end it hears of: plain data, so that another node can go on
 * with the session, or close it when this one has died.
 */
export const OPENING = Type.Object({
  /** Unique in the cluster. */
  id: Type.String({ minLength: 1, maxLength: 64 }),
  /** The virtual host whose control server allowed it. */
  vhost: Type.String(),
  call: Type.Optional(OPENING_CALL),
});

export type Opening = Static<typeof OPENING>;

/** What tells an opening from all others, and whose it is. */
export type OpeningId = Pick<Opening, 'id' | 'vhost'>;

/** The openings of this node whose sessions have not ended. No method throws. */
export interface Openings {
  /**
   * The session has ended, or never began. The control server is told once, also when nodes that each believed that they
   * had the session close it.
   */
  close(opening: OpeningId, reason: string): void;
  /** This node goes on with a session that another one has opened. */
  adopt(opening: Opening): void;
  /** The same, where the other node, which may have died, told no more than this. Nothing happens if it is closed. */
  resume(id: string, vhost: string): void;
  /** Another node is to go on with the session. If none does within a minute, it is closed. */
  release(opening: OpeningId): void;
}
