import { Type, type Static } from 'typebox';

/** Call of a control server about a session that opens. */
export const WEBHOOK_CALL = Type.Object({
  /** The client, with the field names of these calls. */
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
  /** URL that the control server redirected the client to. */
  new_url: Type.Optional(Type.String()),
  /** Time of the client's request, in milliseconds since the epoch. */
  time: Type.Number(),
});

export type WebhookCall = Static<typeof WEBHOOK_CALL>;

/**
 * Session that a control server has allowed, and whose end it is notified of: plain data, so that another node can continue the
 * session, or close it when this one has died.
 */
export const WEBHOOK_SESSION = Type.Object({
  /** Unique in the cluster. */
  id: Type.String({ minLength: 1, maxLength: 64 }),
  /** The virtual host whose control server allowed it. */
  vhost: Type.String(),
  call: Type.Optional(WEBHOOK_CALL),
  /** Milliseconds for which the control server allowed it, from the time of the call on; absent: as long as the client wants. */
  lifetime: Type.Optional(Type.Number()),
});

export type WebhookSession = Static<typeof WEBHOOK_SESSION>;

/** Identity of a webhook session. */
export type WebhookSessionId = Pick<WebhookSession, 'id' | 'vhost'>;

/** Holder of a running session, as a control server that is asked again needs it. */
export interface SessionHolder {
  /** Ends it. */
  revoke(reason: string): void;
  /** Gives its webhook another end. @param until milliseconds since the epoch; undefined: never */
  relimit(until: number | undefined): void;
}

/** Webhook sessions of this node that have not ended. No method throws. */
export interface WebhookSessions {
  /**
   * Closes a session that has ended, or never began. The control server is notified once, also when several nodes believe that they own
   * the session and close it.
   */
  close(session: WebhookSessionId, reason: string): void;
  /** Continues a session that another node has opened. */
  adopt(session: WebhookSession): void;
  /** Names who ends an open session when its control server does not allow it any more. */
  hold(id: string, holder: SessionHolder): void;
  /** Continues a session of another node, which may have died, of which no more is known. Nothing happens if it is closed. */
  resume(id: string, vhost: string): void;
  /** Leaves a session to another node. If none continues it within a minute, it is closed. */
  release(session: WebhookSessionId): void;
}
