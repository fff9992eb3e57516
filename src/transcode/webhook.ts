import Type from 'typebox';
import { askControlServer } from '../control-server/control-server.ts';
import { ControlServerError, type ControlAnswer } from '../control-server/post.ts';
import { flag, text } from '../config/blocks.ts';
import { OutputProfiles } from '../config/elements/output-profile.ts';
import type { OutputProfilesConfig, TranscodeWebhookConfig } from '../config/model.ts';
import { problemText } from '../config/names.ts';
import { readConfig } from '../config/read.ts';
import { explicit } from '../config/resolve.ts';
import type { Application } from '../core/application.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { Logger } from '../log/log.ts';
import { localTime } from '../lib/local-time.ts';
import { tracksInfo } from '../stats/track-info.ts';

type Named = { readonly profiles: OutputProfilesConfig };

/** The output profiles of an input stream, or why it gets no output stream. */
export type ProfileDecision = Named | { readonly refused: string };

/** Failure to get profiles from the control server: the webhook's policy that applies, and the reason for the log. */
interface Failure {
  readonly policy: `useLocalProfilesOn${'ConnectionFailure' | 'ServerDisallow' | 'ErrorResponse'}`;
  readonly reason: string;
}

const Answer = Type.Object({
  allowed: flag(),
  reason: text({ default: '' }),
  outputProfiles: Type.Optional(OutputProfiles),
});

const MAX_IGNORED = 10;
const MAX_REASON = 200;

/**
 * Decides the output profiles of an input stream: those of its application or, if it has a TranscodeWebhook, those of the
 * control server's answer (docs/compatibility.md#transcoding), completed by the application's. Never rejects; a stream that
 * ends before the answer is refused.
 */
export async function decideProfiles(
  input: InputStream,
  application: Application,
  log: Logger,
): Promise<ProfileDecision> {
  const { transcodeWebhook: webhook, outputProfiles: local } = application.config;
  if (!webhook?.enable) return { profiles: local };
  const gone = new AbortController();
  const giveUp = (reason: string): void => gone.abort(new Error(reason));
  input.once('close', giveUp);
  const outcome = await ask(webhook, question(input, application), local, gone.signal, log);
  input.off('close', giveUp);
  if (gone.signal.aborted) return { refused: 'the stream has ended' };
  if (!('policy' in outcome)) return outcome;
  const { policy, reason } = outcome;
  if (!webhook[policy]) return { refused: `${reason}, and ${policy} is false` };
  log.warn({ reason }, 'the control server sent no output profiles: using those of the configuration');
  return { profiles: local };
}

async function ask(
  webhook: TranscodeWebhookConfig,
  body: object,
  local: OutputProfilesConfig,
  signal: AbortSignal,
  log: Logger,
): Promise<Named | Failure> {
  const { controlServerUrl: url = '', secretKey, timeout } = webhook;
  try {
    return read(await askControlServer({ url, secretKey, timeout }, body, signal), local, log);
  } catch (error) {
    if (!(error instanceof ControlServerError)) throw error;
    const policy = error.answered ? 'useLocalProfilesOnErrorResponse' : 'useLocalProfilesOnConnectionFailure';
    return { policy, reason: `the control server failed: ${error.message}` };
  }
}

function question(input: InputStream, application: Application): object {
  const { url, type } = input.source;
  return {
    source: url,
    stream: {
      name: input.name,
      virtualHost: application.vhost.name,
      application: application.name,
      sourceType: type,
      sourceUrl: url,
      createdTime: localTime(input.createdTime.getTime()),
      tracks: tracksInfo(input),
    },
  };
}

function read({ status, body }: ControlAnswer, local: OutputProfilesConfig, log: Logger): Named | Failure {
  const wrong = (how: string): Failure => ({
    policy: 'useLocalProfilesOnErrorResponse',
    reason: `the control server answered ${how}`,
  });
  if (status !== 200) return wrong(`with status ${status}`);
  const json = parse(body);
  if (json === undefined) return wrong('with something that is not JSON');
  const reading = readConfig(Answer, json);
  const ignored = reading.warnings.slice(0, MAX_IGNORED).map(problemText);
  if (ignored.length > 0) log.warn({ ignored }, "the control server's answer has keys without effect");
  if (!reading.ok) return wrong(`wrongly: ${reading.problems.slice(0, 1).map(problemText).join()}`);
  const { allowed, reason, outputProfiles } = reading.config;
  if (!allowed) {
    const why = reason.slice(0, MAX_REASON) || 'no reason given';
    return { policy: 'useLocalProfilesOnServerDisallow', reason: `the control server disallows it: ${why}` };
  }
  if (outputProfiles === undefined) return { profiles: local };
  const named = Object.keys(explicit(outputProfiles) as object) as (keyof OutputProfilesConfig)[];
  return { profiles: { ...local, ...Object.fromEntries(named.map((key) => [key, outputProfiles[key]])) } };
}

/** Parses JSON without empty texts: the documented answer has them for unset values. */
function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString(), (_, value: unknown) => (value === '' ? undefined : value));
  } catch {
    return undefined;
  }
}
