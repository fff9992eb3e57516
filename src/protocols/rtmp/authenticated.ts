import { PublisherAuthentication, type Credentials } from './publisher-authentication.ts';

/** A connection to a server that may ask for authentication. */
export interface Attempt<Result> {
  /** Resolves when the server accepts the connection. */
  readonly result: Promise<Result>;
  /** Description with which the server has rejected `connect`. */
  readonly refusal: string | undefined;
}

/**
 * Connects to an application, and again with the answer where the server asks for a user and a password.
 * @param app as of `PublisherAuthentication`
 * @throws RtmpError when authentication has failed, or is not possible; what the last attempt does
 */
export async function authenticated<Result>(
  app: string,
  credentials: Credentials | undefined,
  connect: (app: string) => Promise<Attempt<Result>>,
): Promise<Result> {
  const authentication = new PublisherAuthentication(app, credentials);
  for (let next: string | undefined = app; ;) {
    const attempt: Attempt<Result> = await connect(next);
    try {
      return await attempt.result;
    } catch (error) {
      next = attempt.refusal === undefined ? undefined : authentication.next(attempt.refusal);
      if (next === undefined) throw error;
    }
  }
}
