import { Application } from './elements/application.ts';
import type { ApplicationConfig } from './model.ts';
import { readConfig } from './read.ts';
import { explicit } from './resolve.ts';

/** Configuration of an application that is created on demand: that of the template, under another name. */
export function fromTemplate(template: ApplicationConfig, name: string): ApplicationConfig {
  const reading = readConfig(Application, { ...(explicit(template) as object), name });
  if (!reading.ok) throw new Error(`a template that was accepted cannot be used as ${name}`);
  return reading.config as ApplicationConfig;
}
