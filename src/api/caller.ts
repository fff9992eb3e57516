import type { FastifyRequest } from 'fastify';

const MAX_USER = 200;

export interface Caller {
  /** User of the credentials, never their secret part. */
  readonly user: string;
  readonly remote: string;
  /** Node that the client called, if it was another one. */
  readonly takenBy?: string;
}

/** User of an access token `user:password`; `access token` for a token that is all secret. */
export function userOf(accessToken: string): string {
  const [, user, password] = /^([^:]+):(.*)$/s.exec(accessToken) ?? [];
  return user === undefined || password === '' ? 'access token' : user.slice(0, MAX_USER);
}

/** Headers of a call that another node forwards here: they exist only within this process. */
export const CALLER_HEADERS = { user: 'kiln-user', remote: 'kiln-remote', takenBy: 'kiln-taken-by' } as const;

/** Caller of the node that forwards a call here. */
export function carriedCaller({ headers }: FastifyRequest): Caller {
  const value = (name: string): string => decodeURIComponent(headers[name]?.toString() ?? '');
  const { user, remote, takenBy } = CALLER_HEADERS;
  return { user: value(user), remote: value(remote), takenBy: value(takenBy) };
}
