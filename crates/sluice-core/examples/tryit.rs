#![allow(clippy::all, clippy::print_stdout, missing_docs, clippy::disallowed_methods)]
use sluice_core::doc::*;
fn main(){ let mut reg=Registry::default(); for f in std::env::args().skip(1){ let t=std::fs::read(&f).unwrap(); if f.ends_with("registry.yaml"){ let (r,d)=Registry::parse(std::str::from_utf8(&t).unwrap()); for x in d { println!("  {}:{}:{} {} [{}] {} hint {:?}", f,x.line,x.column,x.code,x.path,x.message,x.hint);} reg=r.unwrap_or_default(); continue;}
 let c=check(&t, Format::of_file(&f), &reg); println!("{f}: {} {}", c.is_ok(), c.plan.as_ref().map(|p| p.hash()).unwrap_or_default()); for x in c.diagnostics { println!("  {}:{} {} [{}] {} hint {:?}", x.line,x.column,x.code,x.path,x.message,x.hint);} } }
