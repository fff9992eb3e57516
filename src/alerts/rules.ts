import { resolve } from 'node:path';
import { ChangingFile } from '../config/changing-file.ts';
import { AlertRules } from '../config/elements/alert.ts';
import { expandEnvironment, type Environment } from '../config/macros.ts';
import type { AlertConfig, AlertRulesConfig } from '../config/model.ts';
import { elementPath } from '../config/names.ts';
import { readConfig } from '../config/read.ts';
import { XmlToJson } from '../config/xml-json.ts';
import { parseXml } from '../config/xml.ts';
import type { Logger } from '../log/log.ts';

const ROOT = 'Rules';
const MAX_BYTES = 64 * 1024;
const LOOK_MS = 1000;
const NO_RULES: AlertRulesConfig = { internalQueueCongestion: false };

/**
 * Reads a RulesFile.
 * @param file name for errors
 * @throws ConfigError the text is not well-formed; Error naming the fault in it
 */
export function readRules(text: string, file: string, env: Environment): AlertRulesConfig {
  const root = expandEnvironment(parseXml(text, file), env);
  if (root.name !== ROOT) throw new Error(`the root element must be ${ROOT}, not ${root.name}`);
  const mapper = new XmlToJson();
  const reading = readConfig(AlertRules, mapper.map(AlertRules, root, ROOT));
  const [unknown] = [...mapper.problems, ...mapper.warnings];
  if (unknown !== undefined) throw new Error(`${unknown.path} ${unknown.message}`);
  if (reading.ok) return reading.config;
  const { path, message } = reading.problems[0] ?? { path: [], message: 'is wrong' };
  throw new Error(`${elementPath(ROOT, AlertRules, path)}: ${message}`);
}

/** The present rules: those of the configuration, or of the present content of its RulesFile. */
export class Rules {
  #current: AlertRulesConfig;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #log: Logger;
  readonly #file: ChangingFile | undefined;
  readonly #path: string = '';
  readonly #env: Environment;
  #failure: string | undefined;
  #looking = false;

  /** @param folder base of a relative path of the file */
  constructor({ rules = NO_RULES, rulesFile }: AlertConfig, folder: string, env: Environment, log: Logger) {
    this.#current = rulesFile === undefined ? rules : NO_RULES;
    this.#env = env;
    this.#log = log;
    if (rulesFile === undefined) return;
    this.#path = resolve(folder, rulesFile);
    this.#file = new ChangingFile(this.#path, MAX_BYTES);
    void this.look();
    this.#timer = setInterval(() => void this.look(), LOOK_MS).unref();
  }

  get current(): AlertRulesConfig {
    return this.#current;
  }

  /** Reads the file if it has changed. After an error the rules stay as they were, with a warning. */
  async look(): Promise<void> {
    if (this.#file === undefined || this.#looking) return;
    this.#looking = true;
    try {
      const bytes = await this.#file.changed();
      if (bytes !== undefined) {
        const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
        this.#current = readRules(text, this.#path, this.#env);
        this.#log.info({ file: this.#path }, 'the rules of alerts were read');
      }
      this.#failure = undefined;
    } catch (error) {
      const reason = (error as Error).message;
      if (reason !== this.#failure)
        this.#log.warn(
          { file: this.#path, reason },
          'the RulesFile of Alert cannot be used: the rules remain as they were, and it is read again when it changes',
        );
      this.#failure = reason;
    } finally {
      this.#looking = false;
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
