import type { Application } from '../core/application.ts';
import type { Alert, AlertMessage, Registry } from '../core/registry.ts';
import type { InputStream } from '../core/input-stream.ts';
import { IngressMeter } from './ingress-meter.ts';
import { brokenRules, type IngressRules } from './ingress-rules.ts';
import { ENDED, GOOD } from './recovery.ts';

/** Interval between looks at all streams. */
const LOOK_MS = 2000;
/** Consecutive looks after which a broken rule counts: rates vary. */
const LOOKS = 2;
/** Consecutive good looks after which a rule counts as kept: a rate near its bound breaks it now and then. */
const CALM_LOOKS = 15;

/** A rule that a stream breaks, or did recently. */
interface Broken {
  message: AlertMessage;
  /** Looks in which it was broken, and looks since then in which it was kept. */
  looks: number;
  calm: number;
}

interface Watched {
  readonly application: Application;
  readonly meter: IngressMeter;
  readonly broken: Map<string, Broken>;
  /** Codes of the last alert; empty after a recovery, or before any alert. */
  raised: string;
}

/** Raises an alert when an input stream of this node begins to break rules, breaks others, or keeps all of them again. */
export class IngressWatch {
  readonly #registry: Registry;
  readonly #rules: () => IngressRules | undefined;
  readonly #streams = new Map<InputStream, Watched>();
  readonly #timer: NodeJS.Timeout;

  /** @param rules returns the present rules; undefined: none */
  constructor(registry: Registry, rules: () => IngressRules | undefined) {
    this.#registry = registry;
    this.#rules = rules;
    registry.on('input', this.#onInput);
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  readonly #onInput = (input: InputStream, application: Application): void => {
    const meter = new IngressMeter(input, performance.now());
    const watched: Watched = { application, meter, broken: new Map(), raised: '' };
    this.#streams.set(input, watched);
    input.once('close', () => {
      // ends the alert for its receiver
      if (this.#streams.delete(input) && watched.raised !== '') this.#resolve(input, application, ENDED);
    });
  };

  close(): void {
    clearInterval(this.#timer);
    this.#registry.off('input', this.#onInput);
    this.#streams.clear();
  }

  #look(): void {
    const rules = this.#rules();
    const now = performance.now();
    for (const [input, watched] of this.#streams) {
      const sample = watched.meter.sample(now);
      if (sample !== undefined) this.#judge(input, watched, rules === undefined ? [] : brokenRules(rules, sample));
    }
  }

  #judge(input: InputStream, watched: Watched, messages: readonly AlertMessage[]): void {
    const { broken } = watched;
    const now = new Map(messages.map((message) => [message.code, message]));
    for (const [code, message] of now)
      broken.set(code, { message, looks: (broken.get(code)?.looks ?? 0) + 1, calm: 0 });
    for (const [code, rule] of broken) {
      if (now.has(code)) continue;
      if (rule.looks < LOOKS || ++rule.calm >= CALM_LOOKS) broken.delete(code);
    }
    const steady = [...broken.values()].filter(({ looks }) => looks >= LOOKS).map(({ message }) => message);
    const found = steady.map(({ code }) => code).join();
    if (found === watched.raised) return;
    watched.raised = found;
    if (steady.length === 0) this.#resolve(input, watched.application, GOOD);
    else this.#raise({ input, application: watched.application, messages: steady });
  }

  #resolve(input: InputStream, application: Application, message: AlertMessage): void {
    this.#raise({ input, application, messages: [message], resolved: true });
  }

  #raise({
    input: stream,
    ...alert
  }: Pick<Alert, 'application' | 'messages' | 'resolved'> & { input: InputStream }): void {
    this.#registry.emit('alert', { ...alert, stream, name: stream.name, type: 'INGRESS' });
  }
}
