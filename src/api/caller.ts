import type { FastifyRequest } from 'fastify';

const MAX_USER = 200;

/** Who calls, as it is told to operators. */
export interface Caller {
  /** Of the credentials, never their secret part. */
  readonly user: string;
  /** Address of the client. */
  readonly remote: string;
  /** The node that the client has called, where it was another one. */
  readonly takenBy?: string;
}

/** The user part of an access token `user:password`; of one that is nothing but secret there is none to tell. */
export function userOf(accessToken: string): string {
  const [, user, password] = /^([^:]+):(.*)$/s.exec(accessToken) ?? [];
  return user === undefined || password === '' ? 'access token' : user.slice(0, MAX_USER);
}

/** Headers of a call that another node carries here: they exist only within this process. */
export const CALLER_HEADERS = { user: 'kiln-user', remote: 'kiln-remote', takenBy: 'kiln-taken-by' } as const;

/** Who has called the node that carries a call here. */
export function carriedCaller({ headers }: FastifyRequest): Caller {
  const value = (name: string): string => decodeURIComponent(headers[name]?.toString() ?? '');
  const { user, remote, takenBy } = CALLER_HEADERS;
  return { user: value(user), remote: value(remote), takenBy: value(takenBy) };
}
