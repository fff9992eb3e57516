import type { Application } from '../core/application.ts';
import type { AlertMessage, Registry } from '../core/registry.ts';
import type { InputStream } from '../core/stream.ts';
import { IngressMeter } from './ingress-meter.ts';
import { brokenRules, type IngressRules } from './ingress-rules.ts';

/** Pause between two looks at all streams. */
const LOOK_MS = 2000;
/** Looks in a row with the same result before it counts: rates vary. */
const LOOKS = 2;
/** What is told when a stream keeps all rules again (facts/02-config.md, section Alert). */
const GOOD: AlertMessage = { code: 'OK', description: 'The current status is good' };

interface Watched {
  readonly application: Application;
  readonly meter: IngressMeter;
  /** What was found last, by code, and how many times in a row. */
  found: string;
  times: number;
  /** What the last alert told of, by code. */
  told: string;
}

/** Raises an alert when an input stream of this node begins to break rules, breaks others, or keeps all of them again. */
export class IngressWatch {
  readonly #registry: Registry;
  readonly #rules: () => IngressRules | undefined;
  readonly #streams = new Map<InputStream, Watched>();
  readonly #timer: NodeJS.Timeout;

  /** @param rules those at present; undefined: none */
  constructor(registry: Registry, rules: () => IngressRules | undefined) {
    this.#registry = registry;
    this.#rules = rules;
    registry.on('input', (input, application) => {
      const meter = new IngressMeter(input, performance.now());
      this.#streams.set(input, { application, meter, found: '', times: 0, told: '' });
      input.once('close', () => this.#streams.delete(input));
    });
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    this.#streams.clear();
  }

  #look(): void {
    const rules = this.#rules();
    const now = performance.now();
    for (const [input, watched] of this.#streams) {
      const sample = watched.meter.sample(now);
      if (sample === undefined) continue;
      const messages = rules === undefined ? [] : brokenRules(rules, sample);
      const found = messages.map(({ code }) => code).join();
      watched.times = found === watched.found ? watched.times + 1 : 1;
      watched.found = found;
      if (watched.times < LOOKS || found === watched.told) continue;
      watched.told = found;
      const resolved = messages.length === 0;
      const { application } = watched;
      this.#registry.emit('alert', {
        application,
        stream: input,
        name: input.name,
        type: 'INGRESS',
        messages: resolved ? [GOOD] : messages,
        resolved,
      });
    }
  }
}
